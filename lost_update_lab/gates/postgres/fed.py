"""The gate of psycopg where no server is asked: real code is told what is known (runs/fed_run.py).

A worker's connections are given sessions whose server is played (played.py) before such a run, and their own ones back
after it.
"""

from __future__ import annotations

import weakref
from typing import Any

import psycopg
from psycopg.pq.abc import PGconn

from lost_update_lab.adapters import psycopg as driver
from lost_update_lab.gates.postgres import in_memory
from lost_update_lab.gates.postgres.connections import cut, known_of, take_its_place
from lost_update_lab.gates.postgres.describe import tells_of_itself
from lost_update_lab.gates.postgres.played import PlayedSession, reported
from lost_update_lab.model.commands import Op
from lost_update_lab.model.errors import Unanswered
from lost_update_lab.model.workers import Standing, State, Task
from lost_update_lab.runs.place import beside
from lost_update_lab.servers.postgres import idle_limits
from lost_update_lab.servers.postgres.memoised import MemoisedPostgres
from lost_update_lab.servers.postgres.server import POSTGRES, PostgresServer
from lost_update_lab.servers.postgres.transactions import NOT_STRICT

#: what a worker is told whose reply is lost
CONNECTION_GONE = "server closed the connection unexpectedly"
#: the generators that send what is known, in psycopg's own way
_FED = (driver.EXECUTE, driver.COMMIT, driver.ROLLBACK, driver.ENTER, driver.EXIT)


def fed(world: Any, task: Task, connection: Any, op: Op, gen: Any, begins: bool, tells: bool) -> Standing:
    """`world`: a FedRun. `begins`, `tells`: as in PostgresCommand."""
    who, isolation = connection.explorer_who, connection.explorer_isolation
    in_memory.stand(world, task, who, op, isolation)
    while True:
        yield
        try:
            in_memory.turn(world, task, who, op, begins, tells)
        except Unanswered as unknown:
            gen.close()
            world.refuse(task, unknown)
        if task.state is State.RUN:
            break
    if task.heard == "lost":
        gen.close()
        cut(connection)
        raise psycopg.OperationalError(CONNECTION_GONE)
    server = world.servers[POSTGRES]
    assert isinstance(server, MemoisedPostgres)
    session = server.session(who)
    connection.explorer_holds = connection.explorer_calls = session.holds
    results = server.answers.results.get((op.identity, task.heard))
    failed = isinstance(task.heard, tuple)
    try:
        if results is None and (tells or failed) and not begins:
            return _fails_by_itself(connection, gen)
        played: PlayedSession = connection.explorer_played
        found = played.answers(gen, results or (), session.status)
        if failed or played.pgconn.transaction_status != session.status:
            raise Unanswered
        return found
    except (Unanswered, OSError) as unknown:  # an OSError: of the session that is played
        gen.close()
        world.refuse(task, unknown)


def _fails_by_itself(connection: Any, gen: Any) -> Any:
    """Its connection is gone, which its client knows without a server. Raises psycopg.Error."""
    if connection.closed:
        next(gen)
    raise Unanswered


class PlayedConnections:
    """The connections of one worker while it is fed. `server`: the real one."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._free: list[PlayedSession] = []
        self._used: list[PlayedSession] = []
        self._before: list[tuple[Any, dict[str, Any]]] = []
        self._kept: dict[object, list[Any]] = {}
        #: the connections that the worker makes, each with the one whose session it would have been given
        self._made: list[tuple[weakref.ref[Any], Any]] = []

    def begin(self) -> None:
        self._kept = self._server.kept.listed()

    def plays(self, connection: Any, kind: str, source: Any, text: str) -> bool:
        """The worker is about to send something over this connection, whose server is played from then on. Returns
        False if that cannot be. `kind`: of psycopg's generator; `source`: its cursor."""
        usual = isinstance(connection, psycopg.Connection) and not driver.in_pipeline(connection)
        if not usual or kind not in _FED or getattr(connection, "explorer_deferred", False):
            return False
        if not (connection.closed or hasattr(connection, "explorer_played")):
            # what the gate asks of a session that it sees for the first time
            if idle_limits.begins_at(connection) or self._server.isolation(connection) not in NOT_STRICT:
                return False
            if (session := self._take(connection.pgconn)) is None:
                return False
            self._before.append((connection, dict(vars(connection))))
            connection.explorer_played, connection.pgconn = session, session.pgconn
            driver.prepares_nothing(connection)
        if kind != driver.EXECUTE:
            return True
        if source.format or tells_of_itself(text):
            return False
        return connection.closed or self._sends_by(source, connection)

    def _sends_by(self, cursor: Any, connection: Any) -> bool:
        """A cursor that was made before its connection was played sends there, too."""
        before = [known["pgconn"] for each, known in self._before if each is connection]
        if driver.session_of(cursor) in before:
            driver.sends_over(cursor, connection.pgconn)
        return driver.session_of(cursor) is connection.pgconn

    def make(self, cls: type[Any], made_as: object) -> Any | None:
        """A new connection, like one that the worker has closed before. None: there is none, or it cannot be played."""
        kept = self._server.kept.take(made_as, ())
        session = self._take(kept.pgconn) if kept else None
        if session is None:
            return None
        connection = cls(session.pgconn)
        vars(connection).update(known_of(kept), explorer_kept=False, explorer_played=session)
        self._made.append((weakref.ref(connection), kept))
        return connection

    def end(self) -> None:
        """Each connection has its own session again, as before. One that its worker has closed is kept."""
        self._server.kept.list_again(self._kept)
        for made, kept in self._made:
            if (left := made()) is not None and not driver.is_shut(left):
                del left.explorer_played
                driver.give_back(left, self._server.kept.handed_out(kept))
        for connection, before in self._before:
            closed = driver.is_shut(connection)
            vars(connection).clear()
            vars(connection).update(before)
            if closed and hasattr(connection, "explorer_made_as"):
                stand_in = take_its_place(connection)
                self._server.kept.keep(stand_in.explorer_made_as, stand_in, used=False)
        for session in self._used:
            if session.becomes_idle():
                self._free.append(session)
            else:
                session.close()
        self._used, self._before, self._made = [], [], []

    def let_go(self) -> None:
        """A thread waits in one of these sessions for a reply that does not come."""
        for session in self._used:
            session.close()

    def close(self) -> None:
        for session in self._free:
            session.close()

    def _take(self, like: PGconn) -> PlayedSession | None:
        """None: it cannot be made on this machine."""
        told = reported(like)
        found = next((each for each in self._free if each.reported == told), None)
        if found:
            self._free.remove(found)
        else:
            try:
                with beside():
                    found = PlayedSession(like)
            except (OSError, RuntimeError):
                return None
        self._used.append(found)
        return found
