"""After a run: each session is brought back to idle, as the next run has to find it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loadtest.explorer.gates import redis_connections
from loadtest.explorer.servers.postgres import PostgresServer
from loadtest.explorer.servers.postgres_cut import mend
from loadtest.explorer.servers.redis import RedisServer
from lost_update_lab.model.server import Server


def settle(server: Server, sessions: Sequence[Any]) -> None:
    """Whoever has returned may have left a lock behind, or a transaction. Raises RuntimeError: something is left."""
    if isinstance(server, PostgresServer):
        server.end_sessions(sessions)
        mend(sessions)
        server.prove_idle(sessions)
    elif isinstance(server, RedisServer):
        for session in sessions:
            redis_connections.reset(session)
