"""Does a DEFAULT call a clock, or chance? Its text tells, without the constants and types that are written there."""

from __future__ import annotations

import re

from lost_update_lab.model.sql_strings import without_strings

_TYPE = re.compile(
    r"::\s*(?:(?:timestamp|time)(?:\(\d\))?\s+with(?:out)?\s+time\s+zone|double\s+precision|character\s+varying"
    r"|bit\s+varying|\"[^\"]+\"|[\w.]+)(?:\([\d,\s]+\))?(?:\[\])*",
    re.IGNORECASE,
)
_CALLS = re.compile(
    r"\b(?:now|timeofday|sysdate|rand|curdate|curtime|unix_timestamp|\w*(?:random|uuid|ulid)\w*"
    r"|(?:clock|statement|transaction|utc)_(?:timestamp|date|time))\s*\("
    r"|\b(?:current_(?:timestamp|date|time)|local(?:timestamp|time)|utc_(?:timestamp|date|time))\b",
    re.IGNORECASE,
)
#: what the server gives out in order
_RISES = re.compile(
    r"\b(?:uuidv7|uuid_generate_v[67]|(?:pg_current_xact_id|txid_current)(?:_if_assigned)?|pg_current_wal_\w+)\s*\(",
    re.IGNORECASE,
)
#: the explorer's clock is asked (servers/postgres/clock_words.py)
VIRTUAL = re.compile(r"\bexplorer\.\"?(\w+)\"?\(\)")
#: a text that is read as a time each time anew
_SPECIAL = re.compile(r"'(?:now|today|tomorrow|yesterday)'::text", re.IGNORECASE)


def draws(default: str) -> bool:
    """Does this DEFAULT call a clock, or chance? A constant may be of such a type, or have such a name."""
    default = VIRTUAL.sub("", default)
    bare = _TYPE.sub("", without_strings(default))
    return bool(_CALLS.search(bare) or _SPECIAL.search(default))


def rises(text: str) -> bool:
    """Does this DEFAULT, or this command, ask for something of which each is larger than the one before?"""
    return bool(_RISES.search(without_strings(text)))
