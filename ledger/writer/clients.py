"""The owner's side of the connections: which callers may ask, and what they asked, in order of arrival."""

from __future__ import annotations

import secrets
import socket
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from selectors import EVENT_READ, EVENT_WRITE, BaseSelector
from typing import NamedTuple

import msgspec

from ledger.writer import address, wire
from ledger.writer.wire import LONGEST, LONGEST_HELLO, RECEIVE

INTRODUCTION = 5.0  # seconds within which a new connection must send its first message


@dataclass(slots=True, eq=False)
class CallerConnection:
    """One connection. `worker`: the caller's name, known once its first message had the right secret. `prompt`: it
    asked again soon after its last answer, before `soon`."""

    socket: socket.socket
    since: float
    worker: str | None = None
    received: bytearray = field(default_factory=bytearray)
    unsent: bytearray = field(default_factory=bytearray)
    events: int = EVENT_READ
    soon: float = 0.0
    prompt: bool = False


class OpenOrder(NamedTuple):
    """An order, and the client that gets the answer."""

    client: CallerConnection
    order: wire.Order


class Clients:
    """The clients that are connected to one owner. `anonymous`: those that have not sent the secret yet."""

    def __init__(self, selector: BaseSelector) -> None:
        self.selector = selector
        self.listener, self.address = address.listen()
        self.listener.setblocking(False)
        self.secret = secrets.token_urlsafe(32)
        self.connected: set[CallerConnection] = set()
        self.anonymous: set[CallerConnection] = set()
        self.asked: deque[OpenOrder] = deque()
        self.awaited: set[CallerConnection] = set()
        self.patience = 0.0  # a point in time: wait until then
        selector.register(self.listener, EVENT_READ, self.accept)

    def accept(self, _: int = 0) -> None:
        """Accept a connection. If it does not send the secret in time, it is closed."""
        for client in [each for each in self.anonymous if time.monotonic() - each.since > INTRODUCTION]:
            self.drop(client)
        try:
            connection, _peer = self.listener.accept()
        except OSError:  # the peer is gone, or there are no file descriptors left
            return
        connection.setblocking(False)
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client = CallerConnection(connection, time.monotonic())
        self.connected.add(client)
        self.anonymous.add(client)
        self.selector.register(connection, EVENT_READ, lambda events: self.hear(client, events))

    def hear(self, client: CallerConnection, events: int) -> None:
        """Receive from `client`, and send what it did not accept before."""
        try:
            if events & EVENT_WRITE:
                self._push(client)
            if events & EVENT_READ:
                self._read(client)
        except BlockingIOError:
            pass
        except (OSError, wire.TooLong, msgspec.MsgspecError):
            self.drop(client)

    def _read(self, client: CallerConnection) -> None:
        received: bytes | bytearray = client.socket.recv(RECEIVE)
        if not received:
            raise ConnectionResetError("it hung up")
        if client.received:
            client.received += received
            received = client.received
        while received:
            body, end = wire.cut(received, LONGEST if client.worker is not None else LONGEST_HELLO)
            if body is None:
                break
            self._understand(client, body)
            received = received[end:]
        client.received = bytearray(received)

    def _understand(self, client: CallerConnection, body: bytes | bytearray) -> None:
        if client.worker is not None:
            self.asked.append(OpenOrder(client, wire.read_order(body)))
            client.prompt = time.monotonic() < client.soon
            self.awaited.discard(client)
            return
        hello = wire.read_hello(body)
        if not secrets.compare_digest(hello.secret.encode(), self.secret.encode()):
            raise ConnectionRefusedError("another secret: it asks for another owner")
        client.worker = hello.worker
        self.anonymous.discard(client)

    def expect(self, answered: Sequence[OpenOrder], seconds: float) -> None:
        """Answered callers will ask again, perhaps soon. Wait for those that did so last time."""
        self.patience = soon = time.monotonic() + seconds
        for client, _ in answered:
            client.soon = soon
            if client.prompt:
                self.awaited.add(client)

    def wait(self, missing: int) -> float:
        """Return for how many seconds to wait for the next group. 0 if no requests are `missing`, or once all expected
        callers have asked."""
        if not self.awaited or missing <= 0:
            return 0.0
        return max(0.0, self.patience - time.monotonic())

    def answer(self, client: CallerConnection, answers: list[wire.Told]) -> None:
        """Send `client` the outcome of its order. A client that is gone can ask again."""
        if client not in self.connected:
            return
        try:
            client.unsent += wire.frame(answers)
            self._push(client)
        except BlockingIOError:  # it takes no more now
            self._listen(client, EVENT_READ | EVENT_WRITE)
        except OSError:
            self.drop(client)

    def _push(self, client: CallerConnection) -> None:
        """Send the rest. Raises BlockingIOError if the socket does not accept all of it."""
        while client.unsent:
            del client.unsent[: client.socket.send(client.unsent)]
        if client.events != EVENT_READ:
            self._listen(client, EVENT_READ)

    def _listen(self, client: CallerConnection, events: int) -> None:
        client.events = events
        self.selector.modify(client.socket, events, self.selector.get_key(client.socket).data)

    def drop(self, client: CallerConnection) -> None:
        """End a connection."""
        for known in (self.connected, self.anonymous, self.awaited):
            known.discard(client)
        with suppress(KeyError, ValueError):
            self.selector.unregister(client.socket)
        client.socket.close()

    def close(self) -> None:
        """Stop listening, end all connections, and forget the orders. Callers ask the next owner."""
        self.asked.clear()
        for client in list(self.connected):
            self.drop(client)
        with suppress(KeyError, ValueError):
            self.selector.unregister(self.listener)
        self.listener.close()
        address.remove(self.address)

    def forget_sockets(self) -> None:
        """In a forked child: close the copies. The selector is shared with the parent, so it is not told."""
        for client in list(self.connected):
            client.socket.close()
        self.listener.close()
