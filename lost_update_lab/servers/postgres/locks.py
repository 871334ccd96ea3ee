"""Who waits for whom in PostgreSQL, and what a session may hold: asked of the server, never guessed from the SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Rows = list[tuple[bytes | None, ...]]
Edges = dict[int, set[int]]
#: how long a reply may take before the server is asked whether the command is blocked
NEWS_WITHIN_MS = 1

BLOCKERS = "SELECT pid, pg_blocking_pids(pid) FROM unnest($1::int[]) AS pid"
HELD = "SELECT pid, locktype, mode FROM pg_locks WHERE pid = ANY($1) AND locktype <> 'virtualxid'"


def edges(rows: Rows) -> Edges:
    """Process id → those that it waits for, from the rows of BLOCKERS."""
    return {
        int(pid or 0): {int(by) for by in (found or b"").strip(b"{}").split(b",") if by}
        for pid, found in rows
    }


def in_circle(pids: list[int], waits_for: Edges) -> list[int]:
    return [pid for pid in pids if pid in _reachable(pid, waits_for)]


def _reachable(start: int, waits_for: Edges) -> set[int]:
    seen: set[int] = set()
    front = list(waits_for.get(start, ()))
    while front:
        pid = front.pop()
        if pid not in seen:
            seen.add(pid)
            front += waits_for.get(pid, ())
    return seen


def holds(connection: Any) -> bool:
    """Does it hold a lock beyond its transactions?"""
    return bool(getattr(connection, "explorer_holds", False))


def wrote(connection: Any) -> bool:
    """May it hold a lock, of its transaction or beyond? One that only read holds none that anybody runs into."""
    return holds(connection) or bool(getattr(connection, "explorer_wrote", False))


def array(numbers: Sequence[int]) -> bytes:
    """As the parameter of a question."""
    return b"{%s}" % ",".join(map(str, numbers)).encode()
