"""A wire that sends and receives on the socket itself; redis-py makes the connection, hiredis reads the replies.

redis-py's own sending and reading cost a quarter of an uncontended acquire. Only for its plain connections: one
that sends or reads in a way of its own (TLS, sentinels, a client that someone instruments) gets an ordinary wire,
and so does everyone where hiredis is not installed or while somebody has replaced redis-py's methods.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from redis.connection import AbstractConnection, ConnectionPool, SSLConnection
from redis.exceptions import ConnectionError, InvalidResponse
from redis.exceptions import TimeoutError as RedisTimeoutError

from locks.fair_lock.wire import ENOUGH, INCOMPLETE, Wire

try:
    import hiredis
except ImportError:  # an option of redis-py
    hiredis = None  # type: ignore[assignment]

NAP = 0.02  # seconds for a reply at first; a slower one is awaited with care

_class: Any = AbstractConnection
SEND, READ = _class.send_packed_command, _class.read_response


def suits(pool: ConnectionPool) -> bool:
    """May this pool's connections be used past redis-py's methods?"""
    kind: Any = pool.connection_class
    return (
        hiredis is not None
        and SEND.__module__ == READ.__module__ == _class.__module__  # else they were replaced before us
        and kind.send_packed_command is SEND
        and kind.read_response is READ
        and not issubclass(kind, SSLConnection)
    )


def untouched() -> bool:
    """Are redis-py's methods its own? Whoever replaces them wants to see what is sent."""
    return _class.send_packed_command is SEND and _class.read_response is READ


def _not_connected(_: bytes) -> None:
    raise OSError("not connected")


def _deaf(_: int) -> bytes:
    raise OSError("not connected")


def _nothing() -> Any:
    return INCOMPLETE


class DirectWire(Wire):
    """As Wire."""

    put: Callable[[bytes], None] = staticmethod(_not_connected)  # type: ignore[assignment]  # of the socket
    hear: Callable[[int], bytes] = staticmethod(_deaf)  # type: ignore[assignment]
    _feed: Callable[[bytes], None]  # of hiredis' reader
    _gets: Callable[[], Any] = staticmethod(_nothing)

    def _listen(self, connection: Any) -> None:
        super()._listen(connection)
        connection.update_current_socket_timeout(
            None
        )  # Python's costs a poll() before each send() and recv()
        sock = connection._get_socket()
        for option, limit in ((socket.SO_RCVTIMEO, NAP), (socket.SO_SNDTIMEO, self._timeout)):
            seconds, fraction = divmod(limit, 1)
            kernels = struct.pack("ll", int(seconds), int(fraction * 1_000_000))
            sock.setsockopt(socket.SOL_SOCKET, option, kernels)
        reader = hiredis.Reader(
            replyError=connection._parser.parse_error, protocolError=InvalidResponse, notEnoughData=INCOMPLETE
        )
        self.put, self.hear, self._feed, self._gets = sock.sendall, sock.recv, reader.feed, reader.gets

    def disconnect(self) -> None:
        super().disconnect()
        self.put, self.hear = _not_connected, _deaf
        self._gets = _nothing  # what is left of the old connection's replies answers nothing

    def keep(self, heard: bytes) -> None:
        if heard:  # else it was closed, as will be found out again
            self._feed(heard)

    def first(self) -> Any:
        return self._gets()

    def _send(self, command: bytes) -> None:
        try:
            self._connection._sock.sendall(command)
        except OSError as error:
            raise ConnectionError(f"while writing to socket: {error}") from error

    def _read(self, timeout: float) -> Any:
        until = time.monotonic() + timeout
        while (reply := self._gets()) is INCOMPLETE:
            self._feed(self._bytes(until))
        return reply

    def _bytes(self, until: float) -> bytes:
        sock = self._connection._sock
        if sock is None:
            raise ConnectionError("the connection is closed")
        if not _readable(sock, until - time.monotonic()):
            raise RedisTimeoutError("Timeout reading from socket")
        try:
            data: bytes = sock.recv(ENOUGH)
        except OSError as error:
            raise ConnectionError(f"while reading from socket: {error}") from error
        if not data:
            raise ConnectionError("Connection closed by server.")
        return data


def _readable(sock: socket.socket, seconds: float) -> bool:
    poller = select.poll()
    poller.register(sock, select.POLLIN)
    return seconds > 0 and bool(poller.poll(seconds * 1000))
