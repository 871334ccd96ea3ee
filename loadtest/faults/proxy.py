"""A TCP proxy in front of one server: the network between it and some clients, which can be cut, be slow, or lose a
reply."""

from __future__ import annotations

import re
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

#: what changes nothing on the server: its reply may as well arrive
READS = re.compile(
    rb"\r\n(HELLO|CLIENT|SELECT|GET|HGET|HMGET|PTTL|TTL|EXISTS|SUBSCRIBE|INFO)\r\n", re.IGNORECASE
)


class Proxy:
    """`swallow`: the next command that changes something is carried out, and its reply is thrown away with the
    connection. `cut`: nothing gets through in the named directions until `mend`; what was sent meanwhile arrives
    then, as TCP does it. `delay`: seconds that each piece takes, in each direction.

    `server`: a loopback port, or the path of a unix socket.
    """

    def __init__(self, server: int | Path | None) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._armed = threading.Event()
        self._spared: re.Pattern[bytes] | None = None
        self._open = {False: threading.Event(), True: threading.Event()}  # by: is it a reply?
        self.mend()
        self.delay = 0.0
        self.swallowed: list[str] = []
        #: pieces that were held back by a cut
        self.held = 0
        #: pieces that took `delay`
        self.delayed = 0

    @property
    def url(self) -> str:
        """For a Redis client."""
        return f"redis://127.0.0.1:{self.port}/0"

    def swallow(self, *, reads: bool = False) -> None:
        """`reads`: the reply of any command, also of one that changes nothing."""
        self._spared = None if reads else READS
        self._armed.set()

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
        except OSError:  # it is down: so is the way to it
            client.close()
            return
        doomed = threading.Event()
        for source, target, replies in ((client, server, False), (server, client, True)):
            told = (source, target, replies, doomed)
            threading.Thread(target=self._pump, args=told, daemon=True).start()

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
                if not replies and self._armed.is_set() and not (self._spared and self._spared.search(data)):
                    self._armed.clear()
                    doomed.set()
                    self.swallowed.append(data.split(b"\r\n")[2].decode(errors="replace"))
                if replies and doomed.is_set():
                    break  # the server has answered: it was carried out
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
