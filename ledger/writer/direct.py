"""Commands to Redis over a connection that stays with the thread.

A caller of the single writer sends two commands for each posting. Through redis-py's client and its pool they cost
more than twice the CPU (170 against 70 µs here), and that is most of what the caller spends.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from redis import Redis
from redis.exceptions import ConnectionError

_thread = threading.local()


def ask(redis: Redis, *commands: tuple[Any, ...]) -> list[Any]:
    """Send `commands` in one write and return their replies. Raises what redis-py raises, and sends nothing twice."""
    connection = _connection(redis)
    try:
        connection.send_packed_command(connection.pack_commands(commands), False)
        return [connection.read_response() for _ in commands]
    except BaseException:
        connection.disconnect()  # a reply may be on its way, and would answer the next question
        raise


def _connection(redis: Redis) -> Any:
    """This thread's connection, made as the client's pool makes its own. The parent's stays the parent's."""
    held = _thread.__dict__.setdefault("connections", {})
    key = redis.connection_pool, os.getpid()
    connection = held.get(key)
    if connection is None:
        connection = held[key] = redis.connection_pool.make_connection()
    elif _ended(connection):  # the server was restarted since
        connection.disconnect()
    return connection


def _ended(connection: Any) -> bool:
    try:
        return connection.is_connected and connection.can_read(timeout=0)
    except (ConnectionError, OSError):
        return True
