"""Where a command to MariaDB asks for the time, or waits for some.

The session's variable `timestamp` answers for NOW() and its like, wherever they stand: in a view, a trigger, a DEFAULT
too. SYSDATE() alone goes by another clock, and is asked for as NOW().
"""

from __future__ import annotations

import re
from functools import lru_cache

from lost_update_lab.servers.stamps import is_stamp

#: UNIX_TIMESTAMP(value) is no clock
_CALLED = (
    r"now|sysdate|unix_timestamp|curdate|curtime|current_(?:date|time|timestamp)|local(?:time|timestamp)"
    r"|utc_(?:date|time|timestamp)"
)
_BARE = r"current_(?:date|time|timestamp)|local(?:time|timestamp)|utc_(?:date|time|timestamp)"
_QUOTED = r"'(?:[^'\\]|''|\\.)*'|\"(?:[^\"\\]|\"\"|\\.)*\"|`[^`]*`|--\s[^\n]*|\#[^\n]*|/\*(?!!).*?\*/"
_ASKS = re.compile(
    rf"{_QUOTED}|(?<![\w.@])(?:(?P<called>{_CALLED})\s*\(\s*(?P<digits>\d?)\s*\)|(?P<bare>{_BARE})\b(?!\s*\())",
    re.IGNORECASE | re.DOTALL,
)
_SYSDATE = re.compile(rf"{_QUOTED}|(?<![\w.@])(?P<sysdate>sysdate)(?=\s*\()", re.IGNORECASE | re.DOTALL)
#: sleeps, and nothing else
_SLEEP = re.compile(
    r"\s*(?:SELECT|DO)\s+SLEEP\s*\(\s*([\d.]+)\s*\)(?:\s+AS\s+`?\w+`?)?\s*;?\s*$", re.IGNORECASE
)
#: what only the server's own clock can do
_BEYOND = re.compile(
    rf"{_QUOTED}|(?P<beyond>\b(?:sleep|benchmark)\s*\(|(?<!innodb_lock_)(?<!\block_)\bwait_timeout\b"
    r"|\binteractive_timeout\b|\bidle_(?:\w+_)?transaction_timeout\b"
    r"|\bset\s+(?:(?:session|local)\s+|@@(?:session\.)?)?timestamp\b)",
    re.IGNORECASE | re.DOTALL,
)


@lru_cache(maxsize=1 << 12)
def asks(text: str) -> bool:
    """Does it ask for the time?"""
    return any(map(_is_clock, _ASKS.finditer(text)))


@lru_cache(maxsize=1 << 12)
def decides(text: str) -> bool:
    """Is the time compared with something, reckoned with, or told to the client? If not, it is only written down."""
    found = [each for each in _ASKS.finditer(text) if _is_clock(each)]
    return any(not is_stamp(text, *each.span()) for each in found)


@lru_cache(maxsize=1 << 12)
def digits(text: str) -> frozenset[int]:
    """How many digits the times have after the point: between two of them such a clock does not move."""
    return frozenset(int(each["digits"] or 0) for each in _ASKS.finditer(text) if _is_clock(each))


@lru_cache(maxsize=1 << 12)
def virtual(text: str) -> str:
    """The same command, asked of the session's `timestamp` alone."""
    return _SYSDATE.sub(lambda found: "NOW" if found["sysdate"] else found[0], text)


@lru_cache(maxsize=1 << 12)
def without_clock(text: str) -> str:
    """The same command without these words: what else does it call?"""
    return _ASKS.sub(lambda found: "" if _is_clock(found) else found[0], text)


def goes_on(text: str) -> bool:
    """Does it ask for a time that goes on while the command waits?"""
    return virtual(text) != text


def beyond(text: str) -> str:
    """What in this command goes by the server's own clock, and by no other. "": nothing."""
    if sleeps(text) is not None:
        return ""
    return next((each["beyond"] for each in _BEYOND.finditer(text) if each["beyond"]), "").strip()


def sleeps(text: str) -> float | None:
    """For how many seconds the command sleeps, if it does nothing else."""
    found = _SLEEP.match(text)
    return float(found[1]) if found else None


def without_sleep(text: str) -> str:
    """The same command, which sleeps for no time."""
    found = _SLEEP.match(text)
    return f"{text[: found.start(1)]}0{text[found.end(1) :]}" if found else text


def _is_clock(found: re.Match[str]) -> bool:
    return bool(found["called"] or found["bare"])
