"""Small questions to a connection of redis-py, and to what comes over it."""

from __future__ import annotations

from typing import Any

import redis

#: what the server has counted down of a lease since is given back to what a worker reads of it
GRAIN_MS = 10


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


def lease(left: int, passed: int) -> int:
    """What a lease was when it was given, in ms: of all that it can have been (`left` are left, at most `passed` have
    gone by since, on a machine that may be busy) the roundest."""
    grain = 10_000
    while -(-left // grain) * grain > left + passed:
        grain //= 10
    return -(-left // grain) * grain
