"""A TCP proxy in front of a server, which swallows a reply when it is told to."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self


class Proxy:
    """Everything passes, until `swallow`: then the next request still reaches the server and is carried out, and
    its reply is thrown away with the connection."""

    def __init__(self, port: int) -> None:
        self._server = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._swallow = threading.Event()
        self.swallowed = 0

    def swallow(self) -> None:
        self._swallow.set()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        # A thread in accept() is not woken by close(); it is by shutdown().
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                for source, target, replies in ((client, server, False), (server, client, True)):
                    threading.Thread(target=self._pump, args=(source, target, replies), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, replies: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if replies and self._swallow.is_set():
                    self._swallow.clear()
                    self.swallowed += 1
                    break
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
