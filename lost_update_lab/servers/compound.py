"""Which commands read rows, and write by what they have read. Outside of a transaction, too, others can come between:

    A: UPDATE job SET owner = 'A' WHERE id = (SELECT id FROM job WHERE owner IS NULL LIMIT 1)
    B:      the same, before A has committed: reads job 1, waits for A, and takes job 1 over

So it is explored as the transaction that it is: it is executed, and then it commits (the gates of PostgreSQL and of
MariaDB). Where there is one such command, every one that writes is two steps: B may read before A, which changes
one row, has committed. Where there is none, a command that names nothing besides its target, calls no function and
fires no trigger is one step: it locks the row that it decides by.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property

#: beside its target it names another table, or the same once more
_READS = re.compile(
    r"\s*(?:(?:INSERT|REPLACE)\b.*\b(?:SELECT|TABLE)\b|UPDATE\b.*\b(?:SELECT|FROM|(?:STRAIGHT_)?JOIN)\b|UPDATE\b[^=]*,.*\bSET\b"
    r"|DELETE\b.*\b(?:SELECT|USING|JOIN)\b|DELETE\s+(?!FROM\b).*\bFROM\b|MERGE\b|WITH\b.*\b(?:INSERT|UPDATE|DELETE|MERGE)\b"
    r"|EXECUTE\b|DO\s+(?:\$|'|LANGUAGE\b))",
    re.IGNORECASE | re.DOTALL,
)
_CHANGES = re.compile(r"\s*(?:INSERT|REPLACE|UPDATE|DELETE)\b", re.IGNORECASE)
_COMMENT = re.compile(r"\s*(?:--[^\n]*(?:\n|$)|#[^\n]*(?:\n|$)|/\*.*?\*/|\()", re.DOTALL)
_WRITES = re.compile(r"\s*(?:INSERT|REPLACE|UPDATE|DELETE|MERGE|WITH|SELECT|CALL|DO|SET)\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")


class Compound:
    """`called`: the names of functions that may look at tables, and of what calls functions where no text shows it:
    tables with triggers, views."""

    def __init__(self, called: Callable[[], Iterable[str]]) -> None:
        self._ask = called
        self._known: dict[str, bool] = {}
        self._was_seen = False

    def begins(self, text: str) -> bool:
        """Is this the first of them? Then everything has to begin again."""
        if self._was_seen or text not in self:
            return False
        self._was_seen = True
        return True

    def __contains__(self, text: str) -> bool:
        """`text`: a command that writes, or may do so."""
        statement = _without_comments(text.partition(" ← ")[0])
        if statement not in self._known:
            self._known[statement] = bool(_READS.match(statement)) or self._calls(statement)
        return self._known[statement] or (self._was_seen and bool(_CHANGES.match(statement)))

    def _calls(self, statement: str) -> bool:
        words = {word.lower() for word in _WORD.findall(statement)}
        return bool(_WRITES.match(statement)) and not self._called.isdisjoint(words)

    @cached_property
    def _called(self) -> set[str]:
        return {name.lower() for name in self._ask()}


def _without_comments(statement: str) -> str:
    """The statement from its first word on."""
    while found := _COMMENT.match(statement):
        statement = statement[found.end() :]
    return statement
