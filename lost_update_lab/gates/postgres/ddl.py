"""Commands that make, change or drop something that is no row: a table, a view, a function.

What an operation makes so is in no snapshot, so the next schedule would find it; and PostgreSQL decides by unique
indexes of its catalogue who is the first. An operation that does so cannot be explored. A temporary table is another
one in each session. And a table that the setup has made is left alone by CREATE TABLE IF NOT EXISTS.
"""

from __future__ import annotations

import re

from lost_update_lab.model.errors import IN_THE_SETUP, Broken
from lost_update_lab.servers.postgres.server import PostgresServer
from lost_update_lab.telling.narrative import shortened

MAKES = "the explorer puts rows back, and no tables: what an operation makes, alters or drops is not explored"

_LITERAL = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)  # or a comment
#: … at the beginning of a statement, also of one in a body
_CHANGES = re.compile(
    r"(?:^|;|\$\w*\$|\b(?:BEGIN|THEN|ELSE|LOOP)\b)\s*(?:CREATE|ALTER|DROP|REFRESH)\b"
    r"(?!\s+(?:OR\s+REPLACE\s+)?(?:(?:GLOBAL|LOCAL)\s+)?TEMP(?:ORARY)?\b)|^\s*SELECT\b.*?\bINTO\b(?!\s+TEMP)",
    re.IGNORECASE | re.DOTALL,
)
_NAME = r'(?:ONLY\s+)?+((?:[\w$]+|"[^"]+")(?:\.(?:[\w$]+|"[^"]+"))?)(?=[\s;(]|$)(?!\s*[,.])'
_MADE_ONCE = re.compile(
    rf"\s*CREATE\s+(?:UNLOGGED\s+)?TABLE\s+IF\s+NOT\s+EXISTS\s+{_NAME}[^;]*;?\s*$", re.IGNORECASE
)
_OF_A_TABLE = re.compile(
    rf'\s*(?:(?:DROP|ALTER)\s+TABLE\s+(?:IF\s+EXISTS\s+)?+|CREATE\s+(?:UNIQUE\s+)?INDEX\s+[^;"]*?\bON\s+){_NAME}'
    r"[^;]*;?\s*$",
    re.IGNORECASE,
)


def beyond(server: PostgresServer, text: str) -> Broken | None:
    """The reason why the explorer cannot vouch for this command; None if it can."""
    if server.makes_tables or not _CHANGES.search(_LITERAL.sub(" ", text)):
        return None
    if (made := _MADE_ONCE.match(text)) and server.has_table(made[1]):
        return None
    if (of := _OF_A_TABLE.match(text)) and not server.has_table(of[1]):
        return None  # a temporary one
    return Broken(f"{MAKES} ({shortened(text, 80)})", IN_THE_SETUP)
