"""What PyMySQL is about to send, as a step; what came back, for people; and what the explorer cannot vouch for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from lost_update_lab.adapters import pymysql as driver
from lost_update_lab.model.commands import ENDS, Op
from lost_update_lab.model.errors import BY_ANOTHER_CLOCK, BY_EXECUTE, IN_A_TRANSACTION, ONE_BY_ONE, Broken
from lost_update_lab.servers.mariadb import clock_words, patience
from lost_update_lab.servers.mariadb.literals import without_literals
from lost_update_lab.servers.mariadb.server import MARIADB
from lost_update_lab.servers.pure_functions import calls_others
from lost_update_lab.telling.narrative import shortened

NO_MARIADB_CLOCK = "MariaDB's own clock decides there, which the explorer cannot move"
NO_GATE = "no gate for PyMySQL's SSCursor, for several statements in one command, LOAD, USE and XA"
IN_ITS_SHADOW = "SET STATEMENT hides the command behind its FOR, and how long that waits"
SET_BEFORE = (
    "send SET SESSION in a command of its own before; FOR UPDATE WAIT n limits the wait of one command"
)

_BEGIN = re.compile(r"\s*(?:BEGIN|START\s+TRANSACTION)\b(?!.*\bSNAPSHOT\b)", re.IGNORECASE | re.DOTALL)
_LOCAL = re.compile(r"\s*(?:SAVEPOINT|RELEASE\s+SAVEPOINT|SET)\b(?!.*\bSELECT\b)", re.IGNORECASE | re.DOTALL)
_SET = re.compile(r"\s*SET\b", re.IGNORECASE)
_PLAIN_SELECT = re.compile(r"\s*(?:SELECT|SHOW)\b(?!.*\b(?:FOR|INTO|LOCK)\b)", re.IGNORECASE | re.DOTALL)
#: the name of a function, or what could be one, and its bracket
_CALL = re.compile(r"(\b(?!(?:IN|AND|OR|NOT|VALUES|AS|ON|WHERE|FROM|SELECT|BY)\b)\w+|`)\s*\(", re.IGNORECASE)
_SEVERAL = re.compile(r";\s*\S")
_FOR_ONE = re.compile(r"\bSET\s+STATEMENT\s+[\w`]+\s*=", re.IGNORECASE)
_LOAD = re.compile(r"\s*(?:LOAD|USE|XA|HANDLER)\b", re.IGNORECASE)
#: asks for what the last command has left
_LAST = re.compile(
    r"\b(?:ROW_COUNT|FOUND_ROWS)\s*\(|@@(?:warning|error)_count\b|\s*(?:SHOW\b.*\b(?:WARNINGS|ERRORS)|GET\s+.*DIAGNOSTICS)\b",
    re.IGNORECASE,
)
_PROCEDURE = re.compile(r"\s*CALL\b", re.IGNORECASE)
_NAMES = re.compile(r"\b(?:GET_LOCK|RELEASE_LOCK|RELEASE_ALL_LOCKS)\s*\(", re.IGNORECASE)
_TABLES = re.compile(r"\bLOCK\s+TABLES?\b|\bFLUSH\b", re.IGNORECASE)

_SKIPS = re.compile(r"\bSKIP\s+LOCKED\b", re.IGNORECASE)
_NO_ROW, _TIMED_OUT = "no row", "Error: 1205, "


def beyond(text: str, unbuffered: bool) -> Broken | None:
    """The reason why the explorer cannot vouch for this command; None if it can."""
    bare = without_literals(text)
    if unbuffered or _SEVERAL.search(bare) or _LOAD.match(bare):
        return Broken(f"{NO_GATE} ({shortened(text, 80)})", BY_EXECUTE)
    if _FOR_ONE.search(bare):
        return Broken(f"{IN_ITS_SHADOW} ({shortened(text, 80)})", SET_BEFORE)
    if found := clock_words.beyond(text):
        return Broken(f"{NO_MARIADB_CLOCK} ({found} in {shortened(text, 80)})", BY_ANOTHER_CLOCK)
    if patience.names_unclear(text, bare):
        return Broken(
            f"{NO_MARIADB_CLOCK} (how long GET_LOCK waits is no number in {shortened(text, 80)})",
            BY_ANOTHER_CLOCK,
        )
    return None


def outside_of_a_transaction(text: str, alone: bool) -> Broken | None:
    """The reason why the explorer cannot vouch for it there; None if it can. `alone`: the session's last command was
    a transaction by itself."""
    if _PROCEDURE.match(text):
        return Broken(
            f"each command of a procedure commits by itself there ({shortened(text, 80)})", ONE_BY_ONE
        )
    if alone and _LAST.search(text):
        return Broken(f"the explorer has sent a COMMIT since ({shortened(text, 80)})", IN_A_TRANSACTION)
    return None


def text_of(name: str, text: str, sets: bool | None = None) -> str:
    """What PyMySQL's method `name` sends. `sets`: whether each command commits from then on."""
    if name in (driver.BEGIN, driver.COMMIT, driver.ROLLBACK):
        return name.upper()
    if name == driver.WARNINGS:
        return "SHOW WARNINGS"
    return f"SET AUTOCOMMIT = {sets:d}" if name == driver.AUTOCOMMIT else text


def describe(text: str, inside: bool, timed: bool = False) -> Op:
    """The command as a step. `inside`: inside a transaction; `timed`: the server's clock counts in it."""
    return Op(MARIADB, text, text.encode(errors="surrogateescape"), *_kind_of(text, inside), timed)


@lru_cache(maxsize=1 << 12)
def _kind_of(text: str, inside: bool) -> tuple[bool, bool]:
    """Is the command local, and does it only read (Op)?"""
    bare = clock_words.without_clock(without_literals(text))
    ends = bool(re.match(r"\s*SET\b.*\bAUTOCOMMIT\b", bare, re.IGNORECASE))
    local = bool(_BEGIN.match(bare) or _LOCAL.match(bare)) and not (inside and (ends or _BEGIN.match(bare)))
    local = local and not (_SET.match(bare) and _CALL.search(bare))  # SET @mine = claim('A')
    return local, local or bool(_PLAIN_SELECT.match(bare) and not calls_others(bare) and ":=" not in bare)


def lasts(text: str) -> bool:
    """May it take, or release, something that outlasts a transaction?"""
    return bool(_NAMES.search(without_literals(text))) or locks_tables(text)


def locks_tables(text: str) -> bool:
    return bool(_TABLES.search(without_literals(text)))


def tells_patience(text: str) -> bool:
    return patience.ROWS in text.lower() or patience.STATEMENT in text.lower()


def shown(op: Op, answer: Sequence[Any]) -> str:
    """What came back, for people."""
    text = op.text
    if not answer or (op.alone and text in ("BEGIN", *ENDS)):
        return ""
    written, _, _, rows = answer
    if rows is None:
        word = text.split(maxsplit=1)[0].upper()
        return f"{word} {written}" if _written(text) else word
    lines = [", ".join("NULL" if value is None else str(value) for value in row) for row in rows]
    return "; ".join(lines) or _NO_ROW


def locks_rows(op: Op, answer: Sequence[Any]) -> bool:
    """Has it written, or locked, a row?"""
    if op.reads or op.local or not answer:
        return False
    written, _, _, rows = answer
    return bool(written if rows is None else rows)


def is_refused(op: Op, told: str) -> bool:
    """Did it not wait, or no longer, for a row that another transaction has locked?"""
    return _TIMED_OUT in told or (told == _NO_ROW and bool(_SKIPS.search(op.text)))


def _written(text: str) -> bool:
    return bool(re.match(r"\s*(?:INSERT|UPDATE|DELETE|REPLACE)\b", text, re.IGNORECASE))
