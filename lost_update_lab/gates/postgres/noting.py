"""What PostgreSQL has answered is noted, with all that the answer depends on: from then on it is known."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from psycopg.pq.abc import PGresult

from lost_update_lab.model.commands import ENDS, Op
from lost_update_lab.schedule.world import World
from lost_update_lab.servers.postgres.limits import NO_LIMITS, TimeLimits
from lost_update_lab.servers.postgres.locks import holds, keeps
from lost_update_lab.servers.postgres.memoised import (
    POSTGRES_GOES_ON,
    Looked,
    PostgresAnswer,
    PostgresSession,
)
from lost_update_lab.servers.postgres.server import POSTGRES, PostgresServer
from lost_update_lab.servers.postgres.transactions import changes_nothing


def ask(world: World, connection: Any, op: Op, begins: bool = False, tells: bool = False) -> None:
    """Note what the answer will depend on; None: the answer is not to be kept."""
    server = world.servers[POSTGRES]
    assert isinstance(server, PostgresServer)
    connection.explorer_asked, connection.explorer_found, connection.explorer_tells = None, b"", tells
    server.clock.sends(connection.explorer_who, op.alone)
    if world.learns and not (op.reads or op.text in ENDS) and server.writes_unseen(op.text):
        server.answers.close()
    if world.learns:
        how = (connection.explorer_isolation, connection.closed, begins, tells)
        _question(server, connection, op, *how)


def waits(world: World, connection: Any, op: Op, lifted: TimeLimits) -> None:
    server, asked = world.servers[POSTGRES], connection.explorer_asked
    assert isinstance(server, PostgresServer)
    if world.learns:
        server.way.waits(
            server.everything(), connection.explorer_who, server.clock.asked(op, connection.explorer_who)
        )
        # only the scheduler knows when a wait with a limit ends
        server.way.known = server.way.known and lifted == NO_LIMITS
        if asked and server.way.known and not server.answers.closed:
            server.answers.known[asked] = None


def looks(world: World, connection: Any, op: Op, place: str) -> None:
    server, asked = world.servers[POSTGRES], connection.explorer_asked
    assert isinstance(server, PostgresServer)
    if world.learns:
        who = connection.explorer_who
        server.way.looks(server.everything(), who, server.clock.asked(op, who), place)
        if asked and server.way.known and not server.answers.closed:
            server.answers.known[asked] = Looked(place)


def goes_on(world: World, connection: Any, op: Op) -> None:
    server = world.servers[POSTGRES]
    assert isinstance(server, PostgresServer)
    if world.learns:
        _question(server, connection, op, POSTGRES_GOES_ON, connection.explorer_tells)


def _question(server: PostgresServer, connection: Any, op: Op, *how: object) -> None:
    connection.explorer_found, who = server.everything(), connection.explorer_who
    connection.explorer_timed = server.clock.asked(op, who)
    connection.explorer_asked = server.way.question(
        connection.explorer_found,
        who,
        connection.explorer_timed,
        connection.explorer_isolation,
        server.answers.strict,
        server.answers.counts(op),
        server.draws.around(who),
        *how,
    )


def keep(world: World, op: Op, told: Hashable, results: Sequence[PGresult]) -> None:
    """Keep what the server sent, for real code that is told the same without it."""
    server = world.servers[POSTGRES]
    assert isinstance(server, PostgresServer)
    if world.learns and results:
        server.answers.results.setdefault((op.identity, told), results)


def learn(
    world: World,
    connection: Any,
    op: Op,
    reply: bytes,
    shown: str,
    error: str = "",
    touched: bool = False,
) -> None:
    server, asked = world.servers[POSTGRES], connection.explorer_asked
    assert isinstance(server, PostgresServer)
    if not world.learns:
        return
    by_itself = server.way.known  # and not stopped by the scheduler
    session = PostgresSession(
        connection.pgconn.transaction_status,
        getattr(connection, "explorer_wrote", False),
        holds(connection),
        connection.explorer_isolation,
        connection.closed,
        keeps=keeps(connection),
    )
    told, counts = shown.encode() if error else reply, server.answers.counts(op)
    how = connection.explorer_timed, told, bool(error), session.inside, counts
    server.way.went(connection.explorer_found, connection.explorer_who, *how)
    if asked and by_itself and not server.answers.closed:
        held = (b"", b"") if changes_nothing(op) else (server.committed(), server.everything())
        server.answers.known[asked] = PostgresAnswer(reply, shown, error, *held, touched, session)
