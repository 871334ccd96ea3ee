"""Columns that a DEFAULT fills by the server's clock, and the commands in which such a time may decide something.

    INSERT INTO hold (seat) VALUES (7)                           made timestamp DEFAULT now(): only written down
    DELETE FROM hold WHERE made < now() - interval '10 min'      the command compares it
    SELECT made FROM hold                                        the worker may, with its own clock

The text of a command tells, and the names of what it may show them by.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from lost_update_lab.servers.compound import words_of
from lost_update_lab.servers.stamps import compared, has_condition

#: what a command tells of a row without naming a column
_WHOLE = re.compile(r"\*(?!\s*\))|\bTABLE\b|\b(?:row_to_json|to_jsonb?|jsonb?_agg)\s*\(", re.IGNORECASE)
_INSERT = re.compile(r"\s*(?:INSERT|REPLACE)\b", re.IGNORECASE)
#: where an INSERT begins to read
_READS = re.compile(r"\b(?:SELECT|RETURNING|WHERE)\b", re.IGNORECASE)


class FilledColumns:
    """`columns`: their names. `tables`: those that have one, and what writes to one unseen. `naming`: functions and
    views that name such a column. All in lower case."""

    def __init__(self, columns: Collection[str], tables: Collection[str], naming: Collection[str]) -> None:
        self._columns, self._tables = frozenset(columns), frozenset(tables)
        self._told_by = self._columns | frozenset(naming)
        self._told: dict[str, str] = {}

    def __bool__(self) -> bool:
        """Are there any?"""
        return bool(self._columns or self._tables)

    def named_in(self, statement: str) -> Collection[str]:
        """The columns of this name. A column of another table may have it, too."""
        return words_of(statement) & self._columns if self else ()

    def written_by(self, text: str) -> bool:
        """Might this command, which writes, fill one?"""
        return bool(self) and not self._tables.isdisjoint(words_of(text.partition(" ← ")[0]))

    def told_in(self, text: str) -> str:
        """By what may this command return, or compare, such a time? A column, a table whose rows it returns as a whole,
        or a function or a view that names one. "": by nothing."""
        statement = text.partition(" ← ")[0]
        if statement not in self._told:
            found = self._tells(statement) if self else ()
            self._told[statement] = min(found) if found else ""
        return self._told[statement]

    def compared_in(self, text: str) -> str:
        """By what does this command compare one? "": by nothing."""
        statement = text.partition(" ← ")[0]
        found = compared(self._told_by, statement) if self else set[str]()
        if self and has_condition(statement):  # the view may have another name for the column
            found |= words_of(statement) & (self._told_by - self._columns)
        return min(found) if found else ""

    def _tells(self, statement: str) -> Collection[str]:
        told, begins = statement, _READS.search(statement)
        if _INSERT.match(statement):
            told = statement[begins.start() :] if begins else ""
        wholes = words_of(statement) & self._tables if _WHOLE.search(told) else frozenset[str]()
        return wholes | words_of(told) & self._told_by
