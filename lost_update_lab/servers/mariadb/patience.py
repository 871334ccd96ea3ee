"""How long a command says that it waits: GET_LOCK(name, 10), FOR UPDATE WAIT 5; and the same without that limit.

GET_LOCK(name, -1) waits for ever on MySQL. MariaDB answers NULL at once, with a warning, and nobody has the lock.

The server's own timers run in real time. So it is asked to wait for ever, and the scheduler ends the wait when the
virtual time has come.
"""

from __future__ import annotations

import re

#: settings of a session, in s
ROWS, STATEMENT = "innodb_lock_wait_timeout", "max_statement_time"
#: what a command may wait for, beside rows
NAMED_LOCK = "name"
#: PyMySQL's option, in s: the client closes the connection when it has heard nothing for so long
GIVES_UP_READING = "read_timeout"
#: s; so often does the server look, while a command waits for a name, whether the client is still there
LOOKS_FOR_ITS_CLIENT = 1.0
#: s; in real time a command waits until the scheduler says that its time is over
FOR_EVER = 86_400
#: the lock of a name: the name, and how many seconds it waits
_NAMED = re.compile(
    r"(\bGET_LOCK\s*\(\s*(?:'(?:[^'\\]|''|\\.)*'|\"[^\"]*\")\s*,\s*)(-?[\d.]+)(\s*\))", re.IGNORECASE
)
_NAMES = re.compile(r"\bGET_LOCK\s*\(", re.IGNORECASE)
_ROWS = re.compile(r"(\b(?:FOR\s+UPDATE|SHARE\s+MODE)\s+WAIT\s+)(\d+)", re.IGNORECASE)


def names_unclear(text: str, bare: str) -> bool:
    """Does it say how long it waits for a name in other words than a number? `bare`: the text without its values."""
    return len(_NAMES.findall(bare)) > len(_NAMED.findall(text))


def named_patience(text: str) -> float | None:
    """How many seconds it waits for the lock of a name. None: it names none."""
    return max((max(float(found[2]), 0.0) for found in _NAMED.finditer(text)), default=None)


def row_patience(text: str) -> float | None:
    """How many seconds it says that it waits for a row. None: it does not say."""
    found = _ROWS.search(text)
    return float(found[2]) if found else None


def waiting(text: str, over: bool = False) -> str:
    """The command with no limit on its wait; or, when the time for a name is `over`, without any wait."""

    def seconds(found: re.Match[str]) -> str:
        if float(found[2]) <= 0:
            return found[0]
        return f"{found[1]}{0 if over else FOR_EVER}{found[3]}"

    def rows(found: re.Match[str]) -> str:
        return f"{found[1]}{FOR_EVER if int(found[2]) else 0}"

    return _ROWS.sub(rows, _NAMED.sub(seconds, text))
