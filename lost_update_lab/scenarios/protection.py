"""What protects an operation, as the text of a command says it: locks of rows, of names and of tables, a stricter
isolation level. Each can be taken out of the text, and nothing else of it changes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

#: brackets with at most three of them inside each other
_BRACKETS = r"(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))"
#: what locks rows, from here to the end of a SELECT or of a bracket
_ROWS = re.compile(
    r"\s+FOR\s+(?:NO\s+KEY\s+UPDATE|UPDATE|KEY\s+SHARE|SHARE)(?:\s+OF\s+[\w\".,\s]+?)?(?:\s+NOWAIT|\s+WAIT\s+\d+|\s+SKIP\s+LOCKED)?(?=\s*(?:;|\)|$))",
    re.IGNORECASE,
)
_SHARED = re.compile(r"\s+LOCK\s+IN\s+SHARE\s+MODE(?:\s+(?:NOWAIT|WAIT\s+\d+))?", re.IGNORECASE)
_NAMED = re.compile(rf"\b(?:GET|RELEASE)_LOCK\s*{_BRACKETS}", re.IGNORECASE)
_ADVISORY = re.compile(
    rf"\bpg_(?:try_)?advisory_(?:xact_)?(?:lock|unlock)(?:_shared)?\s*{_BRACKETS}", re.IGNORECASE
)
_TABLE = re.compile(r"^\s*LOCK\s+(?:TABLES?\s+)?.*$", re.IGNORECASE | re.DOTALL)
_ISOLATION = re.compile(
    r"^\s*SET\s+(?:SESSION\s+|LOCAL\s+)?(?:CHARACTERISTICS\s+AS\s+)?TRANSACTION\s+ISOLATION\s+LEVEL\s+"
    r"(?P<level>SERIALIZABLE|REPEATABLE\s+READ)\b.*$",
    re.IGNORECASE | re.DOTALL,
)
_LEVEL = re.compile(rb"\s+ISOLATION\s+LEVEL\s+(?:SERIALIZABLE|REPEATABLE\s+READ)", re.IGNORECASE)
#: sent in place of a command that does nothing else
ASK_NOTHING = "SELECT 1"
#: what each is called
ROWS, SHARED, NAMED, ADVISORY, TABLE, ISOLATION = (
    "FOR UPDATE",
    "LOCK IN SHARE MODE",
    "GET_LOCK",
    "the advisory lock",
    "LOCK TABLE",
    "the isolation level",
)


def without(text: str, on_mariadb: bool = False) -> tuple[str, tuple[str, ...]]:
    """The command without its locks, and without a level that is stricter than the server's default; and the names of
    what was taken out. Placeholders stay where they are."""
    taken = []
    if _TABLE.match(text):
        return ASK_NOTHING, (TABLE,)
    if (found := _ISOLATION.match(text)) and (not on_mariadb or found["level"].upper() == "SERIALIZABLE"):
        return ASK_NOTHING, (ISOLATION,)
    for name, pattern, instead in (
        (ROWS, _ROWS, ""),
        (SHARED, _SHARED, ""),
        (NAMED, _NAMED, r"(1 + 0 * CHAR_LENGTH(CONCAT\1))"),
        (ADVISORY, _ADVISORY, r"(num_nonnulls\1 >= 0)"),
    ):
        text, times = pattern.subn(instead, text)
        taken += [name] * bool(times)
    return text, tuple(taken)


def taken_if_free(words: Sequence[Any]) -> tuple[Sequence[Any], str]:
    """A Redis command that sets a key only if it is free: what sets it anyway, and the name of what was taken out. The
    same and "": it is none."""
    name = str(words[0]).upper() if words else ""
    if name in ("SETNX", "B'SETNX'"):
        return ("SET", *words[1:]), "SETNX"
    options = [word for word in words[3:] if str(word).upper() not in ("NX", "B'NX'")]  # behind key and value
    if name in ("SET", "B'SET'") and options != [*words[3:]]:
        return [*words[:3], *options], "SET NX"
    return words, ""


def releases(text: str) -> bool:
    """Does the command give a lock of a name back?"""
    return any(word in text.lower() for word in ("unlock", "release_lock"))


def without_level(begin: bytes) -> bytes:
    """psycopg's BEGIN, at the server's default level."""
    return _LEVEL.sub(b"", begin)
