"""A client that can be stopped before any of its commands, and killed there.

The gate is at the socket, so pipelines pass it too, and so do locks that bypass redis-py's methods. What one `sendall`
sends counts as one command. The handshake of a new connection does not count.
"""

from __future__ import annotations

import socket
import threading
from typing import Any

from redis.connection import Connection, UnixDomainSocketConnection

PATIENCE = 60.0


class Killed(SystemExit):
    """Raised at the gate of a dead client. No `except Exception` catches it, and threads end silently with it."""


class Gate:
    """All connections of one client pass it. A new gate is open."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._stop_before: int | None = None
        self._watched: int | None = None
        self._alone: int | None = None
        self._closed = self._dead = self._standing = False
        self._under_way: set[int] = set()
        self.sent = 0

    def stop_before(self, command: int) -> None:
        """Let the calling thread pass `command` more commands, and stop it before the next one."""
        with self._news:
            self._watched, self._stop_before = threading.get_ident(), command

    def close(self) -> None:
        """From now on no thread passes."""
        with self._news:
            self._closed = True

    def open(self) -> None:
        with self._news:
            self._closed, self._stop_before, self._watched, self._alone = False, None, None, None
            self._news.notify_all()

    def keep_others_out(self) -> None:
        """From now on only the thread that stands here passes, even after `open_for_it`."""
        with self._news:
            self._alone = self._watched

    def open_for_it(self) -> None:
        with self._news:
            self._closed, self._stop_before = False, None
            self._news.notify_all()

    def kill(self) -> None:
        """From now on every thread that comes here dies, and so do those that stand here."""
        with self._news:
            self._dead = True
            self._news.notify_all()

    @property
    def standing(self) -> bool:
        """Whether a thread stands at the gate."""
        return self._standing

    @property
    def under_way(self) -> bool:
        """Whether a command is under way whose reply has not been read."""
        return bool(self._under_way)

    def passes(self, connection: int) -> None:
        with self._news:
            if self._watched == threading.get_ident() and self._stop_before is not None:
                self._closed = self._closed or self._stop_before == 0
                self._stop_before -= 1
            if self._closed and self._watched in (None, threading.get_ident()):
                self._standing = True
                self._news.notify_all()
                opened = self._news.wait_for(lambda: self._dead or not self._closed, PATIENCE)
                self._standing = False
                if not opened:
                    raise Killed("the gate was not opened in time")
            self._lets_others_go_first()
            if self._dead:
                raise Killed("this client is dead")
            self.sent += 1
            self._under_way.add(connection)

    def connects(self, connection: int) -> None:
        """A handshake is not a command, but its replies pass the same proxy."""
        with self._news:
            self._lets_others_go_first()
            self._under_way.add(connection)

    def _lets_others_go_first(self) -> None:
        if self._alone not in (None, threading.get_ident()):
            self._news.wait_for(lambda: self._dead or self._alone is None, PATIENCE)

    def answered(self, connection: int) -> None:
        self._under_way.discard(connection)


class _Socket(socket.socket):
    """The socket of a gated connection. A command is under way until bytes of its reply, or of a message, are read."""

    gate: Gate
    shaking_hands = True

    def sendall(self, *args: Any) -> None:
        if not self.shaking_hands:
            self.gate.passes(id(self))
        super().sendall(*args)

    def recv(self, *args: Any) -> bytes:
        try:
            return super().recv(*args)
        finally:
            self._answered()

    def recv_into(self, *args: Any) -> int:
        try:
            return super().recv_into(*args)
        finally:
            self._answered()

    def _answered(self) -> None:
        if not self.shaking_hands:
            self.gate.answered(id(self))


class _Gated:
    def __init__(self, *, gate: Gate, **options: Any) -> None:
        self._gate = gate
        super().__init__(**options)

    def _connect(self) -> _Socket:
        plain: socket.socket = super()._connect()  # type: ignore[misc]
        limit = plain.gettimeout()
        sock = _Socket(fileno=plain.detach())
        sock.settimeout(limit)
        sock.gate = self._gate
        return sock

    def connect_check_health(self, *args: Any, **options: Any) -> Any:
        if self._sock:  # type: ignore[has-type]
            return
        self._gate.connects(id(self))
        try:
            super().connect_check_health(*args, **options)  # type: ignore[misc]
        finally:
            if self._sock:
                self._sock.shaking_hands = False
            self._gate.answered(id(self))


class GatedSocket(_Gated, UnixDomainSocketConnection):
    """Over a unix socket."""


class GatedPort(_Gated, Connection):
    """Over TCP."""
