"""Which row of a split account a thread writes to: it keeps one for as long as nobody else writes there.

    A: row 3, version 7 → 8     row 3, 8 → 9                    one more than A left it: A is alone there, and stays
    B: row 3,                             9 → 10   row 6 …      A has been there: the newcomer moves on
    A: row 3,                                10 → 11            two more: somebody came by. A has stayed long enough
                                                                to take it once

Chance alone puts eight callers on five of eight rows, 8 × (1 − (7/8)⁸); this way each soon has one to itself. A row's
version tells all that is needed: no call more, and no clock. Who finds too little in its row moves on as well.

Source: Doug Lea's LongAdder (java.util.concurrent): a thread keeps its cell until it meets another there.
"""

from __future__ import annotations

from threading import get_ident
from typing import ClassVar, NamedTuple
from uuid import UUID

#: how often in a row an old hand meets others before it moves: a newcomer moves at once, and so does not drive it away
PATIENCE = 4
MOST = 10_000  # threads × accounts that are kept in mind; then all of them choose anew


class Stay(NamedTuple):
    """`version`: as this thread left the row. `trust`: how many meetings it takes."""

    row: int
    version: int
    trust: int = 0


class OwnRows:
    """Of this process. An entry is one thread's own: no lock is needed."""

    _stays: ClassVar[dict[tuple[int, UUID, str], Stay]] = {}

    @classmethod
    def of(cls, book: UUID, account: str) -> int | None:
        """The row to which this thread goes; None: it has none."""
        stay = cls._stays.get((get_ident(), book, account))
        return stay.row if stay else None

    @classmethod
    def wrote(cls, book: UUID, account: str, row: int, version: int) -> None:
        """This thread wrote to `row`, and left it at `version`."""
        key = get_ident(), book, account
        before = cls._stays.get(key)
        trust = 0
        if before:
            trust = min(before.trust + 1, PATIENCE) if version == before.version + 1 else before.trust - 1
        if trust < 0:
            cls.leave(book, account)
            return
        if len(cls._stays) >= MOST and not before:
            cls.forget()
        cls._stays[key] = Stay(row, version, trust)

    @classmethod
    def leave(cls, book: UUID, account: str) -> None:
        """This thread goes on from its row. Another one may have made all of them forget meanwhile."""
        cls._stays.pop((get_ident(), book, account), None)

    @classmethod
    def forget(cls) -> None:
        """As in a process that has just begun."""
        cls._stays.clear()
