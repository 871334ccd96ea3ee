"""The must-fail control: without the user's locks the same scenario has to break, or the invariant cannot tell."""

from __future__ import annotations

import re
from typing import Any

import psycopg
from redis.connection import AbstractConnection

from lost_update_lab.gates.patch import Patches
from lost_update_lab.runs.place import here
from lost_update_lab.scenarios.exploration import Opened
from lost_update_lab.scenarios.operations import BREACHES
from lost_update_lab.scenarios.serial import SerialOrders
from lost_update_lab.search.search import Search

#: what locks rows, from here to the end of a SELECT or of a bracket
_ROWS = re.compile(
    r"\s+FOR\s+(?:NO\s+KEY\s+UPDATE|UPDATE|KEY\s+SHARE|SHARE)(?:\s+OF\s+[\w\".,\s]+?)?(?:\s+NOWAIT|\s+SKIP\s+LOCKED)?(?=\s*(?:;|\)|$))",
    re.IGNORECASE,
)
_ADVISORY = re.compile(
    r"\bpg_(?:try_)?advisory_(?:xact_)?(?:lock|unlock)(?:_shared)?\s*\([^()]*\)", re.IGNORECASE
)
_TABLE = re.compile(r"^\s*LOCK\s+(?:TABLE\s+)?.*$", re.IGNORECASE | re.DOTALL)
#: seconds for finding the first schedule that breaks
BUDGET = 20.0


class Unlocked:
    """Takes the workers' locks away, and remembers which."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def install(self, patches: Patches) -> None:
        execute: Any = psycopg.Cursor.execute
        pack: Any = AbstractConnection.pack_command
        pack_all: Any = AbstractConnection.pack_commands

        def unlocked(cursor: Any, query: Any, *args: Any, **keywords: Any) -> Any:
            return execute(cursor, self._sql(query) if here() else query, *args, **keywords)

        def packed(connection: Any, *words: Any) -> Any:
            return pack(connection, *(self._redis(words) if here() else words))

        def all_packed(connection: Any, commands: Any) -> Any:
            return pack_all(connection, [self._redis(each) for each in commands] if here() else commands)

        patches.method(psycopg.Cursor, "execute", unlocked)
        patches.method(AbstractConnection, "pack_command", packed)
        patches.method(AbstractConnection, "pack_commands", all_packed)

    def _sql(self, query: Any) -> Any:
        if not isinstance(query, str | bytes):
            return query
        text = was = query.decode() if isinstance(query, bytes) else query
        if _TABLE.match(text):
            text = "SELECT 1"
            self.taken.add("LOCK TABLE")
        if _ROWS.search(text):
            text = _ROWS.sub("", text)
            self.taken.add("FOR UPDATE")
        if _ADVISORY.search(text):
            text = _ADVISORY.sub("true", text)
            self.taken.add("the advisory lock")
        if text == was:
            return query
        return text.encode() if isinstance(query, bytes) else text

    def _redis(self, words: Any) -> Any:
        name = str(words[0]).upper() if words else ""
        if name == "SETNX":
            self.taken.add("SETNX")
            return ("SET", *words[1:])
        if name == "SET" and any(str(word).upper() in ("NX", "B'NX'") for word in words[3:]):
            self.taken.add("SET NX")
            return [word for word in words if str(word).upper() not in ("NX", "B'NX'")]
        return words


class _UntilBroken(Search):
    """Ends with the first schedule that breaks something."""

    def _backtrack(self) -> bool:
        return not self.result.words.keys() & set(BREACHES) and super()._backtrack()


def control(opened: Opened) -> str:
    """→ why a `kept` would mean nothing; "": the scenario broke without its locks, or has none that can be taken."""
    unlocked = Unlocked()
    with opened.stage([unlocked.install]) as (stage, system):
        order = tuple(i for i, worker in enumerate(opened.scenario.workers) for _ in worker.operations)
        SerialOrders(stage, system).run(order)
        if not unlocked.taken:
            return ""
        searched = _UntilBroken(stage).explore()
    if searched.words.keys() & set(BREACHES) or not searched.exhausted:
        return ""
    taken = " and ".join(sorted(unlocked.taken))
    return f"the invariant cannot tell: without {taken}, too, no order breaks it"
