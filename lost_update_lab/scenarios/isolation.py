"""Another isolation level for transactions that do not ask for one: what would a stricter level change?"""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import IsolationLevel

from lost_update_lab.under_test.scenario import Mistake

Levels = str | IsolationLevel | Sequence[str | IsolationLevel]
ISOLATION_LEVELS = ("read committed", "repeatable read", "serializable")


def level_of(name: str | IsolationLevel) -> IsolationLevel:
    """The isolation level of this name. Raises Mistake."""
    if isinstance(name, IsolationLevel):
        return name
    try:
        return IsolationLevel[str(name).strip().upper().replace(" ", "_")]
    except KeyError:
        raise Mistake(f"there is no isolation level {name!r}: {', '.join(ISOLATION_LEVELS)}") from None
