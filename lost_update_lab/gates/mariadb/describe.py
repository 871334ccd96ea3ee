"""What PyMySQL is about to send, as a step; what came back, for people; and what the explorer cannot vouch for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from lost_update_lab.adapters import pymysql as driver
from lost_update_lab.model.commands import Op
from lost_update_lab.model.errors import BY_ANOTHER_CLOCK, BY_EXECUTE, Broken
from lost_update_lab.servers.mariadb.server import NAME

NO_CLOCK = "MariaDB's own clock decides there, which the explorer cannot move"
NO_GATE = "no gate for PyMySQL's SSCursor, for several statements in one command, LOAD, USE and XA"

_BEGIN = re.compile(r"\s*(?:BEGIN|START\s+TRANSACTION)\b(?!.*\bSNAPSHOT\b)", re.IGNORECASE | re.DOTALL)
_LOCAL = re.compile(r"\s*(?:SAVEPOINT|RELEASE\s+SAVEPOINT|SET)\b(?!.*\bSELECT\b)", re.IGNORECASE | re.DOTALL)
_PLAIN_SELECT = re.compile(r"\s*(?:SELECT|SHOW)\b(?!.*\b(?:FOR|INTO|LOCK)\b)", re.IGNORECASE | re.DOTALL)
#: the name of a function, or what could be one, and its bracket
_CALL = re.compile(r"(\b(?!(?:IN|AND|OR|NOT|VALUES|AS|ON|WHERE|FROM|SELECT|BY)\b)\w+|`)\s*\(", re.IGNORECASE)
_LITERAL = re.compile(r"'(?:[^'\\]|''|\\.)*'|\"(?:[^\"\\]|\"\"|\\.)*\"", re.DOTALL)
_SEVERAL = re.compile(r";\s*\S")
_LOAD = re.compile(r"\s*(?:LOAD|USE|XA|HANDLER)\b", re.IGNORECASE)

_NOW = (
    r"(?:(?:now|sysdate|unix_timestamp|curdate|curtime|utc_timestamp|localtime(?:stamp)?|current_timestamp)\s*"
    r"\(\s*\d?\s*\)|current_timestamp\b|localtimestamp\b|current_date\b|utc_timestamp\b)"
)
_BY_THE_CLOCK = re.compile(
    rf"{_NOW}\s*[-+<>]|[-+<>]=?\s*\(?\s*{_NOW}|\bbetween\s+{_NOW}|\bsleep\s*\(|\bbenchmark\s*\(|\bdate_(?:add|sub)\s*\("
    r"|\bmax_statement_time\b|\b(?<!innodb_)lock_wait_timeout\b|\bwait_timeout\b(?<!lock_wait_timeout)"
    r"|\b(?:for\s+update|share\s+mode)\s+wait\s+\d",
    re.IGNORECASE,
)
#: the lock of a name: the name, and how many seconds it waits
_NAMED = re.compile(
    r"(\bGET_LOCK\s*\(\s*(?:'(?:[^'\\]|''|\\.)*'|\"[^\"]*\")\s*,\s*)(-?[\d.]+)(\s*\))", re.IGNORECASE
)
_NAMES = re.compile(r"\bGET_LOCK\s*\(", re.IGNORECASE)
_LASTS = re.compile(
    r"\b(?:GET_LOCK|RELEASE_LOCK|RELEASE_ALL_LOCKS)\s*\(|\bLOCK\s+TABLES?\b|\bFLUSH\b", re.IGNORECASE
)
_SETS = re.compile(r"\s*SET\b(?!\s+(?:SESSION\s+)?(?:@@)?AUTOCOMMIT\b)", re.IGNORECASE)
#: s; in real time a command waits for a name until the scheduler says that its time is over
_FOR_EVER = 86_400


def beyond(text: str, unbuffered: bool) -> Broken | None:
    """The reason why the explorer cannot vouch for this command; None if it can."""
    bare = _bare(text)
    if unbuffered or _SEVERAL.search(bare) or _LOAD.match(bare):
        return Broken(f"{NO_GATE} ({text[:80]})", BY_EXECUTE)
    if found := _BY_THE_CLOCK.search(bare):
        return Broken(f"{NO_CLOCK} ({found[0].strip()} in {text[:80]})", BY_ANOTHER_CLOCK)
    if len(_NAMES.findall(bare)) > len(_NAMED.findall(text)):
        return Broken(f"{NO_CLOCK} (how long GET_LOCK waits is no number in {text[:80]})", BY_ANOTHER_CLOCK)
    return None


@lru_cache(maxsize=1 << 12)
def _bare(text: str) -> str:
    """The text without its values."""
    return _LITERAL.sub("''", text)


def describe(name: str, text: str, inside: bool, sets: bool | None = None) -> Op:
    """The command of PyMySQL's method `name`. `inside`: inside a transaction; `sets`: whether each command commits."""
    if name in (driver.BEGIN, driver.COMMIT, driver.ROLLBACK):
        text = name.upper()
    elif name == driver.WARNINGS:
        text = "SHOW WARNINGS"
    elif name == driver.AUTOCOMMIT:
        text = f"SET AUTOCOMMIT = {sets:d}"
    bare = _bare(text)
    ends = name == driver.AUTOCOMMIT or bool(re.match(r"\s*SET\b.*\bAUTOCOMMIT\b", bare, re.IGNORECASE))
    local = bool(_BEGIN.match(bare) or _LOCAL.match(bare)) and not (inside and (ends or _BEGIN.match(bare)))
    reads = local or bool(_PLAIN_SELECT.match(bare) and not _CALL.search(bare))
    return Op(NAME, text, text.encode(), local, reads)


def lasts(text: str) -> bool:
    """May it take, or release, something that outlasts a transaction?"""
    return bool(_LASTS.search(_bare(text)))


def sets(text: str) -> bool:
    """Does it set something that the session remembers?"""
    return bool(_SETS.match(text))


def tells_patience(text: str) -> bool:
    return "innodb_lock_wait_timeout" in text.lower()


def named_patience(text: str) -> float | None:
    """How many seconds it waits for the lock of a name. None: for ever."""
    longest = max((float(found[2]) for found in _NAMED.finditer(text)), default=-1.0)
    return None if longest < 0 else longest


def waiting(text: str, over: bool = False) -> str:
    """The command with no limit on its wait for names; or, when the time is `over`, without any wait."""

    def seconds(found: re.Match[str]) -> str:
        given = float(found[2])
        return f"{found[1]}{0 if over or given == 0 else _FOR_EVER}{found[3]}"

    return _NAMED.sub(seconds, text)


def shown(text: str, answer: Sequence[Any]) -> str:
    """What came back, for people."""
    if not answer:
        return ""
    written, _, _, rows = answer
    if rows is None:
        word = text.split(maxsplit=1)[0].upper()
        return f"{word} {written}" if _written(text) else word
    lines = [", ".join("NULL" if value is None else str(value) for value in row) for row in rows]
    return "; ".join(lines) or "no row"


def _written(text: str) -> bool:
    return bool(re.match(r"\s*(?:INSERT|UPDATE|DELETE|REPLACE)\b", text, re.IGNORECASE))
