"""Another isolation level for transactions that do not ask for one: what would a stricter level change?"""

from __future__ import annotations

from psycopg import IsolationLevel

from lost_update_lab.under_test.scenario import Mistake

LEVELS = ("read committed", "repeatable read", "serializable")


def level_of(name: str) -> IsolationLevel:
    """The isolation level of this name. Raises Mistake."""
    try:
        return IsolationLevel[name.strip().upper().replace(" ", "_")]
    except KeyError:
        raise Mistake(f"there is no isolation level {name!r}: {', '.join(LEVELS)}") from None
