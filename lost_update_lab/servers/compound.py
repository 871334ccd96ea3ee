"""Which commands read rows, and write by what they have read. Outside of a transaction, too, others can come between:

    A: UPDATE job SET owner = 'A' WHERE id = (SELECT id FROM job WHERE owner IS NULL LIMIT 1)
    B:      the same, before A has committed: reads job 1, waits for A, and takes job 1 over

So it is explored as the transaction that it is: it is executed, and then it commits (the gates of PostgreSQL and of
MariaDB). A command that names nothing besides its target, calls no function and fires no trigger locks the row that
it decides by: one step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property

#: beside its target it names another table, or the same once more
_READS = re.compile(
    r"\s*(?:(?:INSERT|REPLACE)\b.*\bSELECT\b|UPDATE\b.*\b(?:SELECT|FROM|JOIN)\b|UPDATE\b[^=]*,.*\bSET\b"
    r"|DELETE\b.*\b(?:SELECT|USING|JOIN)\b|MERGE\b|WITH\b.*\b(?:INSERT|UPDATE|DELETE|MERGE)\b"
    r"|EXECUTE\b|DO\s+(?:\$|'|LANGUAGE\b))",
    re.IGNORECASE | re.DOTALL,
)
_WRITES = re.compile(r"\s*(?:INSERT|REPLACE|UPDATE|DELETE|MERGE|WITH|SELECT|CALL|DO)\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")


class Compound:
    """`called`: the names of functions that may look at tables, and of what calls functions where no text shows it:
    tables with triggers, views."""

    def __init__(self, called: Callable[[], Iterable[str]]) -> None:
        self._ask = called
        self._known: dict[str, bool] = {}

    def __contains__(self, text: str) -> bool:
        """`text`: a command that writes, or may do so."""
        statement = text.partition(" ← ")[0]
        if statement not in self._known:
            self._known[statement] = bool(_READS.match(statement)) or self._calls(statement)
        return self._known[statement]

    def _calls(self, statement: str) -> bool:
        words = {word.lower() for word in _WORD.findall(statement)}
        return bool(_WRITES.match(statement)) and not self._called.isdisjoint(words)

    @cached_property
    def _called(self) -> set[str]:
        return {name.lower() for name in self._ask()}
