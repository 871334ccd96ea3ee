"""Commands for which the server chooses at random: no search can repeat them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lost_update_lab.model.errors import CHOOSE_BEFORE, Broken
from lost_update_lab.servers.redis.scripts import called
from lost_update_lab.telling.narrative import shortened

CHOOSES = "the server chooses at random"
#: SPOP is not one of them: it takes the least members here (redis/scripts.py)
_REDIS = frozenset({b"SRANDMEMBER", b"HRANDFIELD", b"ZRANDMEMBER", b"RANDOMKEY"})
#: random() by itself may make a name
_SQL = re.compile(
    r"\bORDER\s+BY\s+(?:random|rand)\s*\(|\bTABLESAMPLE\b"
    r"|\b(?:floor|ceil|ceiling|trunc|truncate|round)\s*\(\s*(?:random|rand)\s*\(",
    re.IGNORECASE,
)


def of_sql(text: str) -> Broken | None:
    return _broken(shortened(text, 80)) if _SQL.search(text) else None


def of_redis(words: Sequence[bytes], script: bytes | None) -> Broken | None:
    """`script`: the text of the script that the command calls; None: it calls none, or it is not known."""
    name = words[0].upper()
    names = {name} | (called(script) or set() if script else set())
    return _broken(b" ".join(sorted(names & _REDIS)).decode()) if names & _REDIS else None


def _broken(what: str) -> Broken:
    return Broken(f"{CHOOSES} ({what}), so no order comes again", CHOOSE_BEFORE)
