"""Everything private that the gates use of redis-py. Nothing else in this package names any of it."""

from __future__ import annotations

import socket as sockets
import ssl
import sys
from fcntl import ioctl
from termios import FIONREAD
from typing import Any

import redis.asyncio.client
import redis.asyncio.connection
import redis.client
import redis.connection
import redis.utils
from redis.connection import AbstractConnection, BlockingConnectionPool, ConnectionPool

from lost_update_lab.adapters.versions import Library, Names, version

#: redis-py's own, without a gate
send: Any = AbstractConnection.send_packed_command
read: Any = AbstractConnection.read_response
can_read: Any = AbstractConnection.can_read
connect_check_health: Any = AbstractConnection.connect_check_health
disconnect: Any = AbstractConnection.disconnect

#: modules whose name `time` is the clock by which redis-py measures how long commands take …
MEASURING = (redis.client, redis.connection, redis.asyncio.client, redis.asyncio.connection)
#: … in these functions, which pass it to the metrics, and to nothing else
MEASURES = frozenset(
    {
        "Redis._execute_command",
        "Redis.execute_command",
        "Redis._close_connection",
        "PubSub._execute",
        "PubSub._reconnect",
        "Pipeline.execute",
        "Pipeline.immediate_execute_command",
        "Pipeline._disconnect_raise_on_watching",
        "Pipeline._disconnect_reset_raise_on_watching",
        "ConnectionPool.get_connection",
        "BlockingConnectionPool.get_connection",
    }
)
_METHODS = (
    "send_packed_command",
    "read_response",
    "can_read",
    "connect_check_health",
    "disconnect",
    "check_health",
    "pack_command",
)


def _measuring(owner: type[Any]) -> Names:
    return Names(
        owner, tuple(name.split(".")[1] for name in sorted(MEASURES) if name.split(".")[0] == owner.__name__)
    )


LIBRARY = Library(
    "redis",
    "redis-py",
    ("8.1",),
    [
        Names(AbstractConnection, (*_METHODS, "_sock", "_parser")),
        Names(redis.connection.Connection, ("host", "port")),
        Names(redis.connection.UnixDomainSocketConnection, ("path",)),
        Names(redis.utils, ("get_lib_version",)),
        *(Names(module, ("time",)) for module in MEASURING),
        *(_measuring(owner) for owner in (redis.client.Redis, redis.client.PubSub, redis.client.Pipeline)),
        *(_measuring(owner) for owner in (ConnectionPool, BlockingConnectionPool)),
    ],
)


def own_version() -> str:
    """redis-py reads it from a file for each new connection: a fifth of the CPU time of a short schedule whose
    workers connect anew (`explore --replay fair-lock/l/a1f2a`)."""
    return version(LIBRARY.distribution)


def socket(connection: Any) -> Any:
    """None: it is not connected. A different object than before: it has connected again."""
    return connection._sock


def answers_within(connection: Any, seconds: float) -> bool:
    """Is there something to read within this time? Raises redis.ConnectionError."""
    return bool(connection._parser.can_read(seconds))


def reads_within(connection: Any) -> float | None:
    """How long the client waits for a reply, in s: redis-py gives up after 5 s if it was not told anything else. None:
    it waits for ever."""
    limit = connection.socket_timeout
    return None if limit is None else float(limit)


def arrived(connection: Any) -> bytes | None:
    """The bytes that have come over this connection since its client last read from it. They stay there to be read.
    None: that cannot be seen."""
    own = socket(connection)
    if own is None or isinstance(own, ssl.SSLSocket):
        return None if own else b""
    size = int.from_bytes(ioctl(own.fileno(), FIONREAD, bytes(4)), sys.byteorder)
    return own.recv(size, sockets.MSG_PEEK) if size else b""
