"""The tables of all cases. Each case defines its own; Django finds them here."""

from museum import registry

registry.load()
