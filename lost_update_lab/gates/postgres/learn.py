"""What PostgreSQL answers is noted while it is asked: from then on it is known (postgres/memory.py)."""

from __future__ import annotations

from typing import Any

from lost_update_lab.model.commands import Op
from lost_update_lab.runs.place import Here
from lost_update_lab.servers.postgres.locks import holds
from lost_update_lab.servers.postgres.memory import GOES_ON, Answer, Session
from lost_update_lab.servers.postgres.server import NAME, PostgresServer
from lost_update_lab.servers.postgres.transactions import ENDS


def ask(place: Here, connection: Any, op: Op, begins: bool = False, tells: bool = False) -> None:
    """Note what the answer will depend on; None: it is not to be known."""
    server = place.run.servers[NAME]
    assert isinstance(server, PostgresServer)
    connection.explorer_asked, connection.explorer_found = None, b""
    if place.run.learns and not (op.reads or op.text in ENDS) and server.writes_unseen(op.text):
        server.answers.close()
    if place.run.learns:
        how = (connection.explorer_isolation, connection.closed, begins, tells)
        _question(server, connection, op, *how)


def waits(place: Here, connection: Any, op: Op) -> None:
    run, server, asked = place.run, place.run.servers[NAME], connection.explorer_asked
    assert isinstance(server, PostgresServer)
    if run.learns:
        server.way.waits(server.everything(), connection.explorer_who, op)
        if asked and server.way.known and run.decisions > run.beaten and not server.answers.closed:
            server.answers.known[asked] = None


def goes_on(place: Here, connection: Any, op: Op) -> None:
    server = place.run.servers[NAME]
    assert isinstance(server, PostgresServer)
    if place.run.learns:
        _question(server, connection, op, *GOES_ON)


def _question(server: PostgresServer, connection: Any, op: Op, *how: object) -> None:
    connection.explorer_found = server.everything()
    connection.explorer_asked = server.way.question(
        connection.explorer_found,
        connection.explorer_who,
        op,
        connection.explorer_isolation,
        server.answers.strict,
        server.answers.counts(op),
        *how,
    )


def learn(
    place: Here,
    connection: Any,
    op: Op,
    reply: bytes,
    shown: str,
    error: str = "",
    touched: bool = False,
) -> None:
    run, server, asked = place.run, place.run.servers[NAME], connection.explorer_asked
    assert isinstance(server, PostgresServer)
    if not run.learns:
        return
    session = Session(
        connection.pgconn.transaction_status,
        getattr(connection, "explorer_wrote", False),
        getattr(connection, "explorer_calls", False),
        holds(connection),
        connection.explorer_isolation,
        connection.closed,
    )
    told = reply or error.encode()
    counts = server.answers.counts(op)
    server.way.went(
        connection.explorer_found, connection.explorer_who, op, told, bool(error), session.inside, counts
    )
    if asked and run.decisions > run.beaten and not server.answers.closed:
        held = server.contents(), server.everything()
        server.answers.known[asked] = Answer(reply, shown, error, *held, touched, session)
