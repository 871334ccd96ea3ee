"""Which row of a split account a thread writes to: it keeps one for as long as it meets no other thread there.

    A: row 3, version 7 → 8     row 3, 8 → 9                    one more than A left it: A is alone there, and stays
    B: row 3,                             9 → 10   row 6 …      A has been there: the newcomer moves on
    A: row 3,                                10 → 11            two more: somebody came by. A has stayed long enough
                                                                to take it once

A random choice spreads eight callers over only five of eight rows: 8 × (1 − (7/8)⁸). With this rule each caller soon
has a row to itself. The row's version carries all the information that is needed, so it takes no further call and no
clock. A thread that finds too little money in its row moves on as well.

Source: Doug Lea's LongAdder (java.util.concurrent): a thread keeps its cell until it meets another thread there.
"""

from __future__ import annotations

from threading import get_ident
from typing import ClassVar, NamedTuple
from uuid import UUID

#: how many meetings in a row an established thread takes before it moves. A newcomer moves at once, so it cannot
#: drive the established thread away
PATIENCE = 4
MOST = 10_000  # remembered threads × accounts; above it everything is forgotten, and all choose anew


class Stay(NamedTuple):
    """`version`: the row's version after this thread's last write. `trust`: how many meetings it still takes."""

    row: int
    version: int
    trust: int = 0


class OwnRows:
    """The rows of this process's threads. Each entry belongs to one thread, so no lock is needed."""

    _stays: ClassVar[dict[tuple[int, UUID, str], Stay]] = {}

    @classmethod
    def of(cls, book: UUID, account: str) -> int | None:
        """Return this thread's row, or None if it has none."""
        stay = cls._stays.get((get_ident(), book, account))
        return stay.row if stay else None

    @classmethod
    def wrote(cls, book: UUID, account: str, row: int, version: int) -> None:
        """Note that this thread wrote to `row` and left it at `version`."""
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
        """Give up this thread's row. Another thread may have called `forget` meanwhile."""
        cls._stays.pop((get_ident(), book, account), None)

    @classmethod
    def forget(cls) -> None:
        """Forget all rows, as in a new process."""
        cls._stays.clear()
