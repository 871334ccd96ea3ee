"""Another isolation level for transactions that do not ask for one: what would a stricter level change?"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import IsolationLevel

from lost_update_lab.gates.patch import Patches
from lost_update_lab.runs.place import anywhere
from lost_update_lab.subject.scenario import Mistake

LEVELS = ("read committed", "repeatable read", "serializable")


def level_of(name: str) -> IsolationLevel:
    """The isolation level of this name. Raises Mistake."""
    try:
        return IsolationLevel[name.strip().upper().replace(" ", "_")]
    except KeyError:
        raise Mistake(f"there is no isolation level {name!r}: {', '.join(LEVELS)}") from None


class Isolated:
    """The gate that makes the workers' transactions begin at this level."""

    def __init__(self, name: str) -> None:
        self.level = level_of(name)

    def install(self, patches: Patches) -> None:
        known: Any = psycopg.Connection.isolation_level

        def level(connection: Any) -> IsolationLevel | None:
            return known.fget(connection) or (self.level if anywhere() else None)

        patches.method(psycopg.Connection, "isolation_level", property(level, known.fset))
