"""A TCP proxy in front of one server: the network to it for some clients, which can be cut, slow, or lose a reply."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Self

from redis import Redis

#: commands that execute other commands, some of which may change something
CARRY_OUT = frozenset({"EXEC", "EVAL", "EVALSHA", "FCALL"})


class Proxy:
    """`swallow`: the next command that changes something is executed, and its reply is thrown away together with the
    connection. `cut`: nothing gets through in the named directions until `mend`. What was sent meanwhile arrives then,
    as with TCP. `delay`: seconds that each piece takes, in each direction.

    `server`: a loopback port, or the path of a unix socket.
    """

    def __init__(self, server: int | Path | None) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._armed = threading.Event()
        self._only: frozenset[str] | None = None
        self._open = {False: threading.Event(), True: threading.Event()}  # requests, replies
        self.mend()
        self.delay = 0.0
        self.swallowed: list[str] = []
        #: when the last reply was lost, by the monotonic clock
        self.swallowed_at = 0.0
        #: pieces that a cut held back
        self.held = 0
        #: pieces that `delay` slowed down
        self.delayed = 0

    @property
    def url(self) -> str:
        """The proxy's address for a Redis client."""
        return f"redis://127.0.0.1:{self.port}/0"

    def swallow(self, *, reads: bool = False) -> None:
        """Lose the next reply. `reads`: to any command, even one that changes nothing."""
        self._only = None if reads else self._changing
        self._armed.set()

    def disarm(self) -> None:
        self._armed.clear()

    @cached_property
    def _changing(self) -> frozenset[str]:
        """The commands that change something, as the server itself lists them."""
        with Redis(port=int(str(self._server))) as client:
            names = client.execute_command("COMMAND LIST", "FILTERBY", "ACLCAT", "write")
        return CARRY_OUT | {name.decode().upper() for name in names}

    def cut(self, *, requests: bool = True, replies: bool = True) -> None:
        if requests:
            self._open[False].clear()
        if replies:
            self._open[True].clear()

    def mend(self) -> None:
        for each in self._open.values():
            each.set()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.mend()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread in accept()
        self._listener.close()

    def _connect(self) -> socket.socket:
        if isinstance(self._server, Path):
            server = socket.socket(socket.AF_UNIX)
            server.connect(str(self._server))
            return server
        return socket.create_connection(("127.0.0.1", self._server or 0))

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = self._connect()
        except OSError:  # the server is down, so the path to it is too
            client.close()
            return
        doomed = threading.Event()
        for source, target, replies in ((client, server, False), (server, client, True)):
            told = (source, target, replies, doomed)
            threading.Thread(target=self._pump, args=told, daemon=True).start()

    def _hit(self, data: bytes) -> str:
        """Return the commands in this piece whose reply is to be lost; "" if there are none."""
        return " ".join(each for each in commands(data) if self._only is None or each in self._only)

    def _pump(
        self, source: socket.socket, target: socket.socket, replies: bool, doomed: threading.Event
    ) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if not self._open[replies].is_set():
                    self.held += 1
                    self._open[replies].wait()
                if self.delay:
                    time.sleep(self.delay)
                    self.delayed += 1
                if not replies and self._armed.is_set() and (hit := self._hit(data)):
                    self._armed.clear()
                    doomed.set()
                    self.swallowed.append(hit)
                if replies and doomed.is_set():
                    self.swallowed_at = time.monotonic()
                    break  # the server has answered, so the command was executed
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def commands(data: bytes) -> list[str]:
    """Return the names of the commands that begin in a piece of a client's requests (RESP). Arguments are skipped,
    because an argument may look like a command. A command that begins before the piece is not included."""
    found: list[str] = []
    at = 0
    while data[at : at + 1] == b"*":
        begin = data.find(b"\r\n", at)
        words = int(data[at + 1 : begin]) if begin > 0 else 0
        at = begin + 2
        for number in range(words):
            begin = data.find(b"\r\n", at)
            if begin < 0:
                return found
            end = begin + 2 + int(data[at + 1 : begin])
            if number == 0:
                found.append(data[begin + 2 : end].decode(errors="replace").upper())
            at = end + 2
        if not words:
            break
    return found
