"""A command that is no worker's, and so no step: an invariant's, or a setup's."""

from __future__ import annotations

from typing import Any

from psycopg.pq import TransactionStatus

from lost_update_lab.adapters import psycopg as driver
from lost_update_lab.gates.invariant_call import asks_a_server
from lost_update_lab.gates.invariant_clock import InvariantClock
from lost_update_lab.gates.postgres.describe import describe, text_of
from lost_update_lab.runs.place import Active
from lost_update_lab.servers.postgres.clock_words import asks
from lost_update_lab.servers.postgres.server import POSTGRES, PostgresServer
from lost_update_lab.snapshot.written import publish


def note_clock(gen: Any) -> None:
    """Does an invariant ask the server's clock?"""
    values = driver.given_to(gen) if asks_a_server() else {}
    if "query" not in values:
        return
    text, server = text_of(values), Active.servers.get(POSTGRES)
    inside = isinstance(server, PostgresServer) and server.unseen.clocks.asks_inside(text)
    InvariantClock.note_command(text, asks(text) or inside)


def may_write(gen: Any) -> bool:
    """A command that passes no gate, as an invariant's: may it change rows?"""
    values = driver.given_to(gen)
    return "query" in values and not describe(driver.EXECUTE, values, idle=False).reads


def published(connection: Any, writes: bool) -> None:
    """Such a command has ended. What its session has committed shall be restored, too."""
    connection.explorer_unpublished = writes or getattr(connection, "explorer_unpublished", False)
    idle = connection.pgconn.transaction_status == TransactionStatus.IDLE
    if connection.explorer_unpublished and idle and not driver.in_pipeline(connection):
        publish(connection.pgconn)
        connection.explorer_unpublished = False
