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
from redis.exceptions import ConnectionError, InvalidResponse, NoScriptError
from redis.exceptions import TimeoutError as RedisTimeoutError

from locks.call import Call, Questions, ScriptCall
from locks.wire import Wire

try:
    import hiredis
except ImportError:  # an option of redis-py
    hiredis = None  # type: ignore[assignment]

NAP = 0.02  # seconds for a reply at first; a slower one is awaited with care
ENOUGH = 256  # bytes: a reply and a message
BATCH = 64  # questions that are packed at once
NAMES = 16  # locks for which a wire keeps some

_class: Any = AbstractConnection
SEND, READ = _class.send_packed_command, _class.read_response
INCOMPLETE = object()


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


class DirectWire(Wire):
    """As Wire."""

    send: Callable[[bytes], None] = staticmethod(_not_connected)  # of the socket
    receive: Callable[..., bytes]
    feed: Callable[[bytes], None]  # of hiredis' reader
    gets: Callable[[], Any]
    _unread: Any = INCOMPLETE  # a message or an error that came where a number was expected

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
        self.send, self.receive, self.feed, self.gets = sock.sendall, sock.recv, reader.feed, reader.gets
        self._unread = INCOMPLETE

    def prepare(self, calls: Questions) -> None:
        """Pack questions to the last byte, for the next acquires: at once they cost a tenth of what each costs
        alone. Not at the first call for a lock: it may be the last one."""
        if not self._connection.is_connected:
            return
        if calls not in self.ready:
            if len(self.ready) == NAMES:
                self.ready.clear()
            self.ready[calls] = []
            return
        if self.ready[calls]:
            return
        for _ in range(BATCH):
            word = self.new_word(calls)
            self.ready[calls].append((calls.acquire.packed + word, word))

    def ask(self, call: Call, word: bytes, timeout: float | None = None) -> Any:
        if timeout is not None or self._connection._sock is None:
            return super().ask(call, word, timeout)
        try:
            self.send(call.packed + word)
            self.feed(self.receive(ENOUGH))
            reply = self.gets()
        except OSError:
            reply = INCOMPLETE
        except BaseException:
            self.disconnect()
            raise
        return self.finish(call, word, reply)

    def finish(self, call: Call, word: bytes, reply: Any) -> Any:
        """As `ask`, after what was read first. INCOMPLETE: nothing came within NAP, or the connection broke;
        reading on will say which."""
        if type(reply) is int:
            self._wake = None
            return reply
        self._unread = reply
        try:
            return self._reply(self._timeout)
        except NoScriptError:
            assert isinstance(call, ScriptCall)
            return self._exchange(call.with_text + word, self._timeout)

    def _send(self, command: bytes) -> None:
        try:
            self._connection._sock.sendall(command)
        except OSError as error:
            raise ConnectionError(f"while writing to socket: {error}") from error

    def _receive(self, timeout: float) -> Any:
        until = time.monotonic() + timeout
        reply, self._unread = self._unread, INCOMPLETE
        while reply is INCOMPLETE:
            reply = self.gets()
            if reply is INCOMPLETE:
                self.feed(self._bytes(until))
        if isinstance(reply, list):
            return self._heard(reply)
        if isinstance(reply, Exception):
            raise reply
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
