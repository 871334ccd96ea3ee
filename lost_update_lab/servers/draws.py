"""In which order open transactions have drawn numbers from a counter: what is committed does not show it yet.

A: INSERT INTO outbox …      draws 1, and has not committed
B: INSERT INTO outbox …      draws 2, and commits; who looks for what is newer than 2 misses A's row
"""

from __future__ import annotations

import re
from typing import Self

from lost_update_lab.model.memoised_server import Who

#: the table into which a command inserts
INSERT = re.compile(r"""\s*INSERT\s+INTO\s+(?:[\w"`]+\.)?["`]?(\w+)""", re.IGNORECASE)


class Draws:
    """By counter (the table of an INSERT; "": not known), the sessions that have drawn from it, in order."""

    def __init__(self) -> None:
        self._by: dict[str, tuple[Who, ...]] = {}

    def drew(self, who: Who, text: str) -> None:
        """The session is inside of a transaction, and this command has drawn a number."""
        found = INSERT.match(text)
        name = found[1].lower() if found else ""
        so_far = self._by.get(name, ())
        if so_far[-1:] != (who,):
            self._by[name] = (*so_far, who)

    def ended(self, who: Who) -> None:
        """So has its transaction."""
        if self._by:
            left = {name: tuple(each for each in order if each != who) for name, order in self._by.items()}
            self._by = {name: order for name, order in left.items() if order}

    def copy(self) -> Self:
        twin = type(self)()
        twin._by = self._by.copy()
        return twin

    def hidden(self) -> bytes:
        """As a part of the state. One session's order is its own."""
        several = {name: order for name, order in sorted(self._by.items()) if len(set(order)) > 1}
        return repr(several).encode() if several else b""
