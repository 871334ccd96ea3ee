"""Which command waits in MariaDB: asked of the server, never guessed from the SQL.

InnoDB's own tables of transactions and of lock waits (information_schema.innodb_trx, innodb_lock_waits) show a state
that is up to 0.1 s old. Its monitor shows the present: each transaction with its thread, and whether it waits.
IS_USED_LOCK() tells which thread holds a name (GET_LOCK), and the list of threads whether another one waits for a name:
a command that was sent may not have reached its thread yet. An interruption (KILL QUERY) would then strike nothing, and
the command would wait for ever. Locks on whole tables appear only in the list of threads, and late.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from lost_update_lab.model.server import NEWS_WITHIN_MS

K = TypeVar("K")
Ask = Callable[[str], tuple[tuple[Any, ...], ...]]

MONITOR = "SHOW ENGINE INNODB STATUS"
TABLES = "SELECT state FROM information_schema.processlist WHERE id = {} AND state LIKE 'Waiting for%lock%'"
AT_A_NAME = "SELECT state FROM information_schema.processlist WHERE id = {} AND state = 'User lock'"
#: the name that a command waits for, as it is written
NAMED = re.compile(r"\bGET_LOCK\s*\(\s*('(?:[^'\\]|''|\\.)*'|\"[^\"]*\")\s*,", re.IGNORECASE)
_THREAD = re.compile(r"^(?:MariaDB|MySQL) thread id (\d+),", re.MULTILINE)


def waiting_for_rows(monitor: str) -> set[int]:
    """The threads whose transactions wait for a lock, from the text of InnoDB's monitor."""
    blocks = monitor.partition("LIST OF TRANSACTIONS")[2].split("\n---TRANSACTION ")
    threads = [(found, block) for block in blocks[1:] if (found := _THREAD.search(block))]
    return {int(found[1]) for found, block in threads if "\nLOCK WAIT" in block[: found.start()]}


def waits_for(ask: Ask, number: int, text: str) -> str:
    """What this thread's command `text` waits for: "rows", or a "name". "": nothing."""
    if number in waiting_for_rows(ask(MONITOR)[0][2]):
        return "rows"
    for name in NAMED.findall(text):
        owner = ask(f"SELECT IS_USED_LOCK({name})")[0][0]
        if owner not in (None, number) and ask(AT_A_NAME.format(number)):
            return "name"
    return ""


def settle(waiting: Mapping[K, tuple[int, str]], ask: Ask, has_answered: Callable[[K, int], bool]) -> list[K]:
    """Of the waiting sessions (each with its thread and its command), those whose commands have ended. A command that
    is no longer blocked works on by itself, and may wait again. So each is watched until it has answered, or waits."""
    patience = NEWS_WITHIN_MS
    while True:
        answered = [key for key in waiting if has_answered(key, 0)]
        rest = {key: of for key, of in waiting.items() if key not in answered}
        silent = [key for key, (number, text) in rest.items() if not waits_for(ask, number, text)]
        if not silent and answered == [key for key in waiting if has_answered(key, 0)]:
            return answered
        if silent and not has_answered(silent[0], patience):
            patience = min(2 * patience, 100)  # a busy machine: the reply will come
