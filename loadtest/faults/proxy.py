"""A TCP proxy in front of one Valkey: it swallows the reply to one command, or lets nothing through any more."""

from __future__ import annotations

import re
import socket
import threading
from contextlib import suppress
from typing import Self

#: what changes nothing on the server: its reply may as well arrive
READS = re.compile(
    rb"\r\n(HELLO|CLIENT|SELECT|GET|HGET|HMGET|PTTL|TTL|EXISTS|SUBSCRIBE|INFO)\r\n", re.IGNORECASE
)


class Proxy:
    """`swallow`: the next command that changes something is carried out, and its reply is thrown away with the
    connection. `cut`: all connections hang, in both directions, until `mend`."""

    def __init__(self, port: int) -> None:
        self._server = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._armed = threading.Event()
        self._open = threading.Event()
        self._open.set()
        self.swallowed: list[str] = []

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def swallow(self) -> None:
        self._armed.set()

    def cut(self) -> None:
        self._open.clear()

    def mend(self) -> None:
        self._open.set()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.mend()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread in accept()
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                doomed = threading.Event()
                for source, target, replies in ((client, server, False), (server, client, True)):
                    told = (source, target, replies, doomed)
                    threading.Thread(target=self._pump, args=told, daemon=True).start()

    def _pump(
        self, source: socket.socket, target: socket.socket, replies: bool, doomed: threading.Event
    ) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._open.wait()
                if not replies and self._armed.is_set() and not READS.search(data):
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
