"""After a run: each session is brought back to idle, as the next run has to find it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lost_update_lab.gates.redis import connections
from lost_update_lab.model.server import Server
from lost_update_lab.servers.postgres.cut import mend
from lost_update_lab.servers.postgres.server import PostgresServer
from lost_update_lab.servers.redis.server import RedisServer


def settle(server: Server, sessions: Sequence[Any]) -> None:
    """Whoever has returned may have left a lock behind, or a transaction. Raises RuntimeError: something is left."""
    if isinstance(server, PostgresServer):
        server.end_sessions(sessions)
        mend(sessions)
        server.prove_idle(sessions)
    elif isinstance(server, RedisServer):
        for session in sessions:
            connections.reset(session)
