"""Small questions to a connection of redis-py, and to what comes over it."""

from __future__ import annotations

from typing import Any

import redis

#: leases are whole hundredths of a second, long ones whole tenths: what the server has counted down since is given back
GRAIN_MS, COARSE_MS = 10, 100


def address(connection: Any) -> str:
    """Where a client's connection goes."""
    path = getattr(connection, "path", None)
    return path or f"{connection.host}:{connection.port}"


def readable(connection: Any) -> bool:
    """Is there something to read, or the end of the connection?"""
    try:
        return not connection._sock or bool(connection._parser.can_read(0))
    except redis.ConnectionError:
        return True


def rounded(milliseconds: int) -> int:
    return -(-milliseconds // GRAIN_MS) * GRAIN_MS if milliseconds > 10 * GRAIN_MS else milliseconds


def lease(milliseconds: int) -> int:
    """What a lease was when it was given, from what is left of it a moment later, on a machine that may be busy."""
    return (
        -(-milliseconds // COARSE_MS) * COARSE_MS if milliseconds > 10 * COARSE_MS else rounded(milliseconds)
    )
