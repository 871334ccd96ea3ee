"""Small questions about a connection of redis-py, and about what comes over it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import redis

from lost_update_lab.adapters import redis_py
from lost_update_lab.model.epoch import Epoch


def address(connection: Any) -> str:
    """The address to which a client's connection leads."""
    path = getattr(connection, "path", None)
    return path or f"{connection.host}:{connection.port}"


def readable(connection: Any) -> bool:
    """Is there something to read, or the end of the connection?"""
    try:
        return not redis_py.socket(connection) or redis_py.answers_within(connection, 0)
    except redis.ConnectionError:
        return True


#: types of RESP: those of one line, those with a length, and those with a number of parts (and how many for each)
_LINES, _BLOBS, _PARTS = b"+-:_,#(", b"$=!", {b"*": 1, b">": 1, b"~": 1, b"%": 2}


def replies(data: bytes) -> list[bytes] | None:
    """The replies and messages in what a server has sent, each as it was sent. None: there are parts of one."""
    found, at = [], 0
    while at < len(data):
        end = _end(data, at)
        if end is None:
            return None
        found.append(data[at:end])
        at = end
    return found


def _end(data: bytes, at: int) -> int | None:
    """Where the reply that begins at `at` ends. None: behind the data, or its type is unknown."""
    line = data.find(b"\r\n", at)
    if line < 0:
        return None
    kind, end = data[at : at + 1], line + 2
    if kind in _LINES:
        return end
    if kind not in _BLOBS and kind not in _PARTS:
        return None
    number = int(data[at + 1 : line])
    if kind in _BLOBS:
        end += number + 2 if number >= 0 else 0
        return end if end <= len(data) else None
    for _ in range(_PARTS[kind] * max(number, 0)):
        if (part := _end(data, end)) is None:
            return None
        end = part
    return end


#: commands that tell the time that a lease has left, or its end
TELLS = frozenset({b"TTL", b"PTTL", b"EXPIRETIME", b"PEXPIRETIME"})


def left(command: str, told: int, leases: Mapping[str, int], now: int) -> int:
    """The answer of one of these commands in virtual time: what a lease has left, or when it ends. `told`: the server's
    answer. `leases`: their ends, in µs, as `now`."""
    name, _, key = command.partition(" ")
    if told < 0 or key not in leases:
        return told
    milliseconds = (leases[key] - (0 if name.endswith("TIME") else now)) // 1000
    milliseconds += round(Epoch.shows) * 1000 if name.endswith("TIME") else 0
    return milliseconds if name.startswith("P") else (milliseconds + 500) // 1000


def kinds(commands: Any) -> tuple[set[bytes], set[bytes], set[bytes]]:
    """The commands that only read, those that may block, and those that write, by the server's own reply to COMMAND."""
    reading = {row[0].upper() for row in commands if b"readonly" in row[2]}
    reading |= {b"PING", b"TIME", b"WATCH", b"UNWATCH"}
    blocking, writing = (
        {row[0].upper() for row in commands if flag in row[2]} for flag in (b"blocking", b"write")
    )
    return reading, blocking, writing
