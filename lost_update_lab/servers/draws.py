"""What open transactions have drawn, in which order: numbers from counters, and places for rows. What is committed does
not show it yet.

A: INSERT INTO outbox …      draws 1, and has not committed
B: INSERT INTO outbox …      draws 2, and commits; who looks for what is newer than 2 misses A's row

PostgreSQL reads rows in the order of their places, which is that of the writes, and not of the commits. It writes an
updated row anew, behind the others:

A: UPDATE bid … WHERE id = 1      the row comes last when this commits
B: INSERT INTO bid …              and commits: B's row comes last even when A has committed
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import dropwhile, groupby
from typing import NamedTuple, Self

from lost_update_lab.model.memoised_server import Who

_NAME = r"""\s+(?:ONLY\s+)?(?:[\w"`]+\.)?["`]?(\w+)"""
#: the table into which a command inserts
INSERT = re.compile(rf"\s*INSERT\s+INTO{_NAME}", re.IGNORECASE)
_WRITES = re.compile(rf"\s*(?:INSERT\s+INTO|UPDATE|MERGE\s+INTO){_NAME}", re.IGNORECASE)
_NO_ROW = re.compile(
    r"\s*(?:SELECT|DELETE|BEGIN|START|SET|COMMIT|END|ROLLBACK|ABORT|SAVEPOINT|RELEASE|LOCK)\b", re.IGNORECASE
)
_OF_A_COUNTER = "nextval"
ROLLBACK = "ROLLBACK"
#: a table that is not known
ANY_TABLE = ""


def drawn_by(statement: str) -> str | None:
    """The table for which this writing command draws, or ANY_TABLE; None: it draws nothing."""
    if _OF_A_COUNTER in statement.lower():
        return ANY_TABLE
    if _NO_ROW.match(statement):
        return None
    found = _WRITES.match(statement)
    return found[1].lower() if found else ANY_TABLE


class Drawn(NamedTuple):
    """`open`: so is the transaction of it. `identity`: of the command."""

    who: Who
    open: bool
    table: str
    identity: bytes


class Draws:
    """What open transactions have drawn, and what others have drawn after them, in order. What came before all of it is
    known by the contents."""

    def __init__(self) -> None:
        self._order: tuple[Drawn, ...] = ()

    def drew(self, who: Who, table: str | None, identity: bytes) -> None:
        """A command has ended, or waits and may have written some rows. `table`: as `drawn_by` says."""
        if table is not None:
            self._order += (Drawn(who, True, table, identity),)

    def ended(self, who: Who, by: str = ROLLBACK) -> None:
        """So has the session's transaction, by this command."""
        if self._order:
            ended = [each._replace(open=False) if each.who == who else each for each in self._order]
            kept = [each for each in ended if each.who != who or by != ROLLBACK]
            self._order = tuple(_from_the_first_open(kept))

    def copy(self) -> Self:
        twin = type(self)()
        twin._order = self._order
        return twin

    def around(self, who: Who) -> bytes:
        """All of it, if a transaction of this session is open and has drawn."""
        return (
            repr(self._order).encode() if any(each.open and each.who == who for each in self._order) else b""
        )

    def hidden(self) -> bytes:
        """As a part of the state. One session's order is its own."""
        if len(self._order) < 2:
            return b""
        orders = {table: self._of(table) for table in sorted({each.table for each in self._order})}
        several = {table: order for table, order in orders.items() if len(order) > 1}
        return repr(several).encode() if several else b""

    def _of(self, table: str) -> list[tuple[Who, bytes]]:
        """Who has drawn in turn; of those who have ended, by which commands."""
        here = [each for each in self._order if each.table in (table, ANY_TABLE)]
        turns = [(each.who, b"" if each.open else each.identity) for each in _from_the_first_open(here)]
        return [turn for turn, _ in groupby(turns)]


def _from_the_first_open(order: Iterable[Drawn]) -> Iterator[Drawn]:
    return dropwhile(lambda each: not each.open, order)
