"""Each hazard, inflicted on real processes and servers. One file for each hazard, with its variants.

The list is the enum `locks.hazards.Hazard`. For example, clock_jump.py inflicts `Hazard.CLOCK_JUMP`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from loadtest.faults.hazards.adversary import Adversary
from locks.hazards import Hazard

__all__ = ["ADVERSARIES", "Adversary"]


def _adversaries(word: Hazard) -> Iterator[type[Adversary]]:
    """Yield each class in a hazard's file that has its own slug, in the order of the file."""
    module = import_module(f"{__name__}.{word.name.lower()}")
    for each in vars(module).values():
        ours = getattr(each, "__module__", "") == module.__name__
        if ours and isinstance(each, type) and issubclass(each, Adversary) and "slug" in vars(each):
            yield each


#: slug → the class that inflicts it. Contention has no class: every trial has it.
ADVERSARIES: dict[str, type[Adversary]] = {
    each.slug: each for word in Hazard if word is not Hazard.CONTENTION for each in _adversaries(word)
}
