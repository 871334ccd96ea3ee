"""What an operation leaves that is no row is in no snapshot: such a command is refused (ddl.py of each database)."""

from __future__ import annotations

from lost_update_lab.model.errors import IN_THE_SETUP, Broken
from lost_update_lab.telling.narrative import shortened

MAKES = "the explorer puts rows back, and no tables: what an operation makes, alters or drops is not explored"


def refused(text: str = "") -> Broken:
    """`text`: the command that was refused."""
    return Broken(f"{MAKES} ({shortened(text or 'inside of a function', 80)})", IN_THE_SETUP)
