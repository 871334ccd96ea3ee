"""The connections of psycopg: which server sessions they are, and what happens to one that cannot be made."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any

import psycopg
from psycopg.pq import ConnStatus, PGconn, TransactionStatus

from lost_update_lab.adapters import psycopg as driver
from lost_update_lab.runs.place import Here, anywhere, beside, connecting, here
from lost_update_lab.servers.postgres.bypass import note
from lost_update_lab.servers.postgres.locks import holds
from lost_update_lab.servers.postgres.server import POSTGRES, PostgresServer

_INSIDE = (TransactionStatus.INTRANS, TransactionStatus.INERROR)
#: as the server does at the end of a session
_UNLOCKS = "SELECT pg_advisory_unlock_all() /* close() */"


def connect(cls: type[psycopg.Connection[Any]], *args: Any, **keywords: Any) -> psycopg.Connection[Any]:
    """The handshake is not a step, and no clock that it looks at is the worker's: it is made once, and kept."""
    with connecting(), beside():
        connection: psycopg.Connection[Any] = driver.connect(cls, *args, **keywords)
    return connection


def connecting_steps(cls: type[Any], conninfo: str = "", *args: Any) -> Generator[Any, Any, Any]:
    """psycopg's own generator. A worker is given a session that it has kept, if there is one (kept.py)."""
    place = anywhere()
    if place is None or place.inside != 1 or not issubclass(cls, psycopg.Connection):
        return note((yield from driver.connecting(cls, conninfo, *args)))
    server, made_as = place.run.at_gates.get(POSTGRES), (place.task.worker.index, conninfo)
    if place.run.fed:
        return place.run.played.make(cls, made_as) or place.run.refuse(place.task)
    kept = None
    if isinstance(server, PostgresServer):
        kept = server.kept.take(made_as, place.task.worker.sessions.get(POSTGRES, ()))
    if kept is None:
        connection = note((yield from driver.connecting(cls, conninfo, *args)))
    else:
        connection = cls(kept.pgconn)
        driver.shut(kept, closed_connection())
    connection.explorer_made_as = made_as
    return connection


def close(connection: psycopg.Connection[Any]) -> None:
    """A worker's session stays, for its next runs. Its connection is closed."""
    place = here()
    server = place.run.at_gates.get(POSTGRES) if place else None
    if place and place.run.fed and not driver.belongs(connection):
        with suppress(psycopg.Error):
            for send in () if place.run.ending else sent_by_the_end(connection):
                send()
        driver.shut(connection, closed_connection())
        return
    if place and isinstance(server, PostgresServer):
        if place.run.ending:
            server.end_sessions([connection])
        else:
            with suppress(psycopg.Error):  # close() hears of none
                for send in sent_by_the_end(connection):
                    send()
        if _may_stay(connection):
            _keep(place, server, connection)
            return
    driver.close(connection)


def sent_by_the_end(connection: Any) -> Iterator[Callable[[], Any]]:
    """What the server does when a session ends is a step that others see. Yields what does it, of either form, one
    after the other."""
    if _can_be_asked(connection) and connection.pgconn.transaction_status in _INSIDE:
        yield connection.rollback
    if _can_be_asked(connection) and holds(connection):
        yield partial(connection.execute, _UNLOCKS)
        yield connection.rollback


def _can_be_asked(connection: Any) -> bool:
    usual = not (connection.closed or driver.belongs(connection) or driver.in_pipeline(connection))
    return usual and connection.pgconn.status == ConnStatus.OK


def _may_stay(connection: Any) -> bool:
    """It is made by a worker, and its end changes nothing on the server: it is inside of no transaction, and holds
    nothing."""
    made = hasattr(connection, "explorer_made_as") and _can_be_asked(connection)
    idle = connection.pgconn.transaction_status == TransactionStatus.IDLE
    return made and idle and not holds(connection)


def _keep(place: Here, server: PostgresServer, connection: Any) -> None:
    """The stand-in takes the place of the connection, so a worker that is replayed uses the session."""
    stand_in = take_its_place(connection)
    worker = place.task.worker
    sessions = worker.sessions.get(POSTGRES, {})
    used = connection in sessions
    if used:
        worker.sessions[POSTGRES] = {
            stand_in if each is connection else each: task for each, task in sessions.items()
        }
        for task in worker.tasks:
            task.uses[POSTGRES] = [
                stand_in if each is connection else each for each in task.uses.get(POSTGRES, [])
            ]
    server.kept.keep(connection.explorer_made_as, stand_in, used)


def take_its_place(connection: Any) -> Any:
    """A connection that has its session, and all that the gates know of it. It is closed."""
    stand_in: Any = psycopg.Connection(connection.pgconn)
    vars(stand_in).update(known_of(connection))
    driver.shut(connection, closed_connection())
    return stand_in


def known_of(connection: Any) -> dict[str, Any]:
    """What the gates have noted at it."""
    return {name: value for name, value in vars(connection).items() if name.startswith("explorer_")}


def cut(connection: Any) -> None:
    """The client finds the connection closed. It gets the connection back after the run: connecting costs more than all
    the rest of a schedule, and the end of the session was already simulated (PostgresServer.end_sessions)."""
    connection.explorer_cut, connection.pgconn = connection.pgconn, closed_connection()


def mend(sessions: Sequence[Any]) -> None:
    for connection in sessions:
        if getattr(connection, "explorer_gone", False):
            connection.pgconn.finish()
        elif real := getattr(connection, "explorer_cut", None):
            connection.explorer_cut = None
            driver.give_back(connection, real)


@cache
def closed_connection() -> Any:
    closed = PGconn.connect_start(b"")
    closed.finish()
    return closed
