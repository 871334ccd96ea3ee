"""Where a command asks for PostgreSQL's clock, and the same command with the functions that answer in its stead.

    the worker sends      UPDATE lock SET owner = 'B' WHERE deadline < now()
    the server is asked   UPDATE lock SET owner = 'B' WHERE deadline < explorer.now()

Only words of SQL are replaced: no string, quoted name or comment. The functions are those of shadows.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from lost_update_lab.servers.stamps import is_stamp, only_written_down, writes
from lost_update_lab.snapshot.chance import VIRTUAL

#: SQL's own words, which are called without brackets; in each, the type to which a precision belongs
_TYPES = {
    "current_timestamp": "timestamptz",
    "localtimestamp": "timestamp",
    "current_time": "timetz",
    "localtime": "time",
    "current_date": "date",
}
_QUOTED = (
    r"[eE]'(?:\\.|''|[^'\\])*'|'(?:''|[^'])*'|\"(?:\"\"|[^\"])*\"|--[^\n]*|/\*.*?\*/"
    r"|\$(?P<tag>[A-Za-z_]\w*)?\$.*?\$(?P=tag)\$|\$\$.*?\$\$"
)
_FUNCTION = (
    r"(?:pg_catalog\s*\.\s*)?(?P<function>now|(?:clock|statement|transaction)_timestamp|pg_sleep)(?=\s*\()"
)
_WORD = rf"(?P<word>{'|'.join(_TYPES)})\b(?P<precision>\s*\(\s*\d\s*\))?"
_ASKS = re.compile(rf"{_QUOTED}|(?<![\w.])(?:{_FUNCTION}|{_WORD})", re.IGNORECASE | re.DOTALL)

#: sleeps, and nothing else: the seconds as a number, or as a parameter
_SLEEP = re.compile(
    r"\s*SELECT\s+(?:pg_catalog\.)?pg_sleep\s*\(\s*(?:(?P<number>[\d.]+)|%s|%\((?P<name>\w+)\)s|\$1)"
    r"(?:\s*::\s*[\w ]+)?\s*\)(?:\s+AS\s+\"?\w+\"?)?\s*;?\s*$",
    re.IGNORECASE,
)
#: what only the server's own clock can do
_BEYOND = re.compile(
    r"\bpg_sleep_(?:for|until)\s*\(|\b(?:transaction|idle_in_transaction_session|idle_session)_timeout\b"
    r"|'(?:now|today|tomorrow|yesterday)'\s*::|\bCAST\s*\(\s*'(?:now|today|tomorrow)'|\b(?:timestamptz|timestamp|date|time|zone)\s*'(?:now|today|tomorrow)'"
    r"|\b(?:timeofday|pg_stat_get_backend_\w+|pg_stat_get_activity)\s*\(|\bage\s*\([^(),]*\)|\"now\"\s*\(|\bnow\s*(?:/\*|--)",
    re.IGNORECASE,
)
#: a time that is rounded, or cut off
_COARSE = re.compile(
    r"\b(?:current|local)_?(?:timestamp|time)\s*\(\s*[0-5]\s*\)|::\s*(?:timestamptz|timestamp|timetz|time)\s*\(\s*[0-5]\s*\)"
    r"|\b(?:date_trunc|date_bin|extract|date_part|floor|round|trunc|cast)\s*\(|::\s*(?:date|bigint|integer|int\d?)\b",
    re.IGNORECASE,
)
#: what cuts the time that follows it
_CUTS = re.compile(r"\b(?:date_trunc|date_bin|floor|round|trunc)\s*\([^()]*$", re.IGNORECASE)
_BLOCK = re.compile(r"\s*DO\b(?=\s*(?:\$|'|LANGUAGE\b))", re.IGNORECASE)
#: a text that a function executes
_EXECUTES = re.compile(r"\bEXECUTE\b(?!\s+(?:FUNCTION|PROCEDURE)\b)", re.IGNORECASE)
_IN_A_STRING = re.compile(
    rf"['$].*\b(?:now\s*\(|\w+_timestamp\s*\(|pg_sleep|{'|'.join(_TYPES)})", re.I | re.S
)
_UNITS = {"minute": 60, "hour": 3600}
_LIMITS = re.compile(r"\b(?:lock|statement)_timeout\b|\b(?:RESET|DISCARD)\s+ALL\b", re.IGNORECASE)


@lru_cache(maxsize=1 << 12)
def steps_by(text: str) -> int:
    """By how many seconds does the time go on that this command compares? 0: by less than a millisecond."""
    if not asks(text) or not _COARSE.search(text):
        return 0
    return next(
        (seconds for word, seconds in _UNITS.items() if re.search(rf"'{word}'", text, re.IGNORECASE)), 1
    )


@lru_cache(maxsize=1 << 12)
def asks(text: str) -> bool:
    """Does it ask for the clock?"""
    return bool(_asked(text))


@lru_cache(maxsize=1 << 12)
def decides(text: str) -> bool:
    """Is the clock compared with something, reckoned with, or told to the client? If not, it is only written down."""
    return any(not is_stamp(text, *each.span()) for each in _asked(text))


@lru_cache(maxsize=1 << 12)
def decides_inside(text: str) -> bool:
    """The same of the text of a function or a view. Or does it ask in a way to which nobody else has an answer?"""
    in_a_string = _EXECUTES.search(text) and _IN_A_STRING.search(text)
    return not only_written_down(text, _asked(text)) or bool(beyond(text) or in_a_string)


def in_a_block(text: str) -> bool:
    """Is it a DO, whose text may ask the clock?"""
    return bool(_BLOCK.match(text) and _IN_A_STRING.search(text))


@lru_cache(maxsize=1 << 12)
def cuts(text: str) -> bool:
    """Does it write down a time that is cut? Two that are written one after the other may be the same."""
    cut = (each["precision"] or _CUTS.search(text, 0, each.start()) for each in _asked(text))
    return writes(text) and any(cut)


@lru_cache(maxsize=1 << 12)
def virtual(text: str) -> str:
    """The same command, asked of the explorer's clock."""
    return _ASKS.sub(_shadow, text)


def of_the_server(text: str) -> str:
    """What `virtual` has made of a command, asked of the server's clock again."""
    return VIRTUAL.sub(lambda found: found[1].upper() if found[1] in _TYPES else f"{found[1]}()", text)


@lru_cache(maxsize=1 << 12)
def without_clock(text: str) -> str:
    """The same command without these words: what else does it call?"""
    return _ASKS.sub(lambda found: "" if _is_clock(found) else found[0], text)


def _asked(text: str) -> list[re.Match[str]]:
    """Where the text asks for it."""
    return [each for each in _ASKS.finditer(text) if _is_clock(each)]


def _is_clock(found: re.Match[str]) -> bool:
    return bool(found["word"] or (found["function"] and found["function"].lower() != "pg_sleep"))


def _shadow(found: re.Match[str]) -> str:
    if found["function"]:
        return f"explorer.{found['function'].lower()}"
    if not found["word"]:
        return found[0]
    word = found["word"].lower()
    rounded = f"::{_TYPES[word]}{found['precision'].strip()}" if found["precision"] else ""
    return f'explorer."{word}"(){rounded}'


@lru_cache(maxsize=1 << 12)
def beyond(text: str) -> str:
    """What in this command goes by the server's own clock, and by no other. "": nothing."""
    found = _BEYOND.search(text)
    if not found and not _SLEEP.match(text):
        found = next(
            (each for each in _ASKS.finditer(text) if (each["function"] or "").lower() == "pg_sleep"), None
        )
    return found[0].strip() if found else ""


def sleeps(text: str, params: Any) -> float | None:
    """For how many seconds the command sleeps, if it does nothing else."""
    found = _SLEEP.match(text)
    if not found:
        return None
    if found["number"]:
        return float(found["number"])
    if isinstance(params, Mapping):
        return float(params[found["name"]])
    return float(params[0]) if isinstance(params, Sequence) else None


@lru_cache(maxsize=1 << 12)
def limits(text: str) -> bool:
    """Does it speak of how long commands may wait, or take?"""
    return bool(_LIMITS.search(text))
