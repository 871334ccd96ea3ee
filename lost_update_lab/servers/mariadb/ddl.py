"""Commands of MariaDB that make, change or drop something that is no row. The next schedule would find it.

PostgreSQL says itself what they are (postgres/ddl.py). MariaDB does not, so their texts do, and those of the routines
that they call. Each of them commits, so it is refused before it is sent.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from lost_update_lab.servers.compound import without_comments

_MAKES = re.compile(
    r"\s*(?:CREATE|ALTER|DROP)\b(?!\s+(?:OR\s+REPLACE\s+)?TEMPORARY\b)|\s*(?:RENAME|GRANT|REVOKE)\b",
    re.IGNORECASE,
)
_IN_A_ROUTINE = re.compile(
    r"\b(?:CREATE|ALTER|DROP)\s+(?:OR\s+REPLACE\s+)?(?:UNIQUE\s+)?(?:TABLE|INDEX|VIEW|TRIGGER|SEQUENCE)\b",
    re.IGNORECASE,
)
#: does nothing if the table is there; if no such table is there, it drops a temporary one, or none
_MAKES_ONE = re.compile(r"CREATE\s+TABLE\s+IF\s+NOT\s+EXISTS\s+`?(\w+)", re.IGNORECASE)
_DROPS = re.compile(r"DROP\s+TABLE\s+(?:IF\s+EXISTS\s+)?(.*)", re.IGNORECASE | re.DOTALL)
_WORD = re.compile(r"\w+")


def makes(text: str, tables: Collection[str], routines: Iterable[str]) -> bool:
    """Does it leave something else than rows? `tables`: those that are there. `routines`: the texts of those that it
    calls."""
    statement = without_comments(text).strip()
    if not _MAKES.match(statement):
        return any(map(_IN_A_ROUTINE.search, routines))
    there = {name.lower() for name in tables}
    if made := _MAKES_ONE.match(statement):
        return made[1].lower() not in there
    if dropped := _DROPS.match(statement):
        return not there.isdisjoint(_WORD.findall(dropped[1].lower()))
    return True
