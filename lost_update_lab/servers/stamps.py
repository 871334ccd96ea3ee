"""A time that a command only writes down, and one that decides something there: the text of SQL around it tells."""

from __future__ import annotations

import re
from collections.abc import Collection

from lost_update_lab.servers.compound import words_of

#: before, and after, a time that is only written down
_BEFORE, _AFTER = (
    re.compile(r"(?:[,(]|(?<![<>!])=)\s*$"),
    re.compile(r"\s*(?:\(\s*\))?\s*(?:[,;)]|$|FROM\b|WHERE\b)", re.I),
)
_CLAUSE = re.compile(r"\b(?:WHERE|HAVING|WHEN|RETURNING|INSERT|REPLACE|SET|SELECT|VALUES)\b", re.IGNORECASE)
_CONDITION = re.compile(r"\b(?:WHERE|HAVING|ON(?!\s+(?:CONFLICT|DUPLICATE)))\b", re.IGNORECASE)
_WRITES = re.compile(r"\b(?:INSERT|UPDATE|MERGE|REPLACE)\b", re.IGNORECASE)
#: the clause in which a time decides, or is told
_DECIDES = frozenset({"WHERE", "HAVING", "WHEN", "RETURNING"})


def compared(columns: Collection[str], text: str) -> set[str]:
    """The columns that stand in a condition of this command, or by which it takes the first or the last row."""
    begins = _CONDITION.search(text)
    conditions = words_of(text[begins.start() :]) if begins else set[str]()
    return {each for each in columns if each in conditions or _picks_by(each, text)}


def has_condition(text: str) -> bool:
    return bool(_CONDITION.search(text))


def _picks_by(column: str, text: str) -> bool:
    name = rf"[\"`]?\b{re.escape(column)}\b"
    return bool(
        re.search(rf"\b(?:MAX|MIN)\s*\([^()]*{name}", text, re.IGNORECASE)
        or re.search(rf"\bORDER\s+BY\b[^;]*{name}[^;]*\b(?:LIMIT|FETCH)\b", text, re.IGNORECASE)
    )


def writes(text: str) -> bool:
    return bool(_WRITES.search(text))


def is_stamp(text: str, begin: int, end: int) -> bool:
    """Stands the time alone where a value is written?"""
    if text[:begin].rstrip().endswith(":="):  # a variable of PL/pgSQL
        return True
    clauses = _CLAUSE.findall(text, 0, begin)
    alone = bool(_BEFORE.search(text[:begin]) and _AFTER.match(text, end))
    return alone and bool(clauses) and clauses[-1].upper() not in _DECIDES
