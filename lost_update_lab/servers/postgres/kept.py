"""Sessions that a worker has closed, kept for its next runs: to make a session takes longer than most schedules.

An operation that connects by itself, and closes its connection, makes one in each run. What it gets is a new connection
object, and a session in which nothing is left of the run before (DISCARD ALL). A session is never used twice in a run:
two connections of a worker are two sessions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from psycopg.pq import ExecStatus

_DISCARD, _DISCARD_TABLES = b"DISCARD ALL", b"DISCARD TEMP"


class KeptSessions:
    """Stand-ins of the connections that workers have closed. Each has its session, and stays until another connection
    is given that."""

    def __init__(self) -> None:
        self._kept: dict[object, list[Any]] = {}

    def keep(self, made_as: object, stand_in: Any, used: bool) -> None:
        """`made_as`: what says that two connections are alike. `used`: in this run, after which it is made as new."""
        stand_in.explorer_kept = True
        self._kept.setdefault(made_as, []).append(stand_in)
        if not used:
            _as_new(stand_in)

    def take(self, made_as: object, used: Collection[Any]) -> Any | None:
        """One of these that is free and not `used` in this run."""
        kept = self._kept.get(made_as, [])
        for place, each in enumerate(kept):
            if each not in used and not each.closed:
                return kept.pop(place)
        return None

    def listed(self) -> dict[object, list[Any]]:
        """All of them, to be listed again by `list_again`."""
        return {made_as: list(some) for made_as, some in self._kept.items()}

    def handed_out(self, stand_in: Any) -> Any:
        """Its session, which another connection has from now on."""
        for some in self._kept.values():
            if stand_in in some:
                some.remove(stand_in)
        return stand_in.pgconn

    def list_again(self, listed: dict[object, list[Any]]) -> None:
        self._kept = listed

    def close(self) -> None:
        for each in (each for some in self._kept.values() for each in some):
            each.close()


def as_new_in_each_run(connection: Any) -> Any:
    """The same connection. What it makes known to its session (SET, a temporary table, PREPARE) is gone after a run."""
    connection.prepare_threshold = None  # psycopg would go on using what it has prepared
    connection.explorer_renewed = True
    return connection


def renew(sessions: Sequence[Any]) -> None:
    """After a run. A temporary table of it is gone, as those of a process that has just begun are."""
    for each in sessions:
        if getattr(each, "explorer_stages", False) and not each.closed:
            each.pgconn.exec_(_DISCARD_TABLES)
            each.explorer_stages = False
        new = getattr(each, "explorer_kept", False) or getattr(each, "explorer_renewed", False)
        if new and not each.closed:
            _as_new(each)


def _as_new(session: Any) -> None:
    if session.pgconn.exec_(_DISCARD).status != ExecStatus.COMMAND_OK:
        session.pgconn.finish()
