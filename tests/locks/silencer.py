"""A TCP proxy before one Valkey that swallows replies: the command was applied, the client never hears of it."""

from __future__ import annotations

import contextlib
import socket
import threading

LOCKS_COMMANDS = (b"EVALSHA", b"DELIFEQ")


class Silencer:
    """`silencer.url` is the server through the proxy. `swallow(n)`: cut the connections of the next `n`
    replies to a lock's commands instead of delivering them."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._left, self._commands = 0, LOCKS_COMMANDS
        self.swallowed = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._listener.getsockname()[1]}/0"

    def swallow(self, replies: int = 1, to: tuple[bytes, ...] = LOCKS_COMMANDS) -> None:
        self._left, self._commands = replies, to

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._port))
                threading.Thread(target=self._requests, args=(client, server), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        """Client to server; the replies to client in a thread of their own, until one is to be swallowed."""
        gate = threading.Event()  # set: such a command is under way, its reply is next
        threading.Thread(target=self._replies, args=(client, server, gate), daemon=True).start()
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if self._left and any(command in data for command in self._commands):
                    gate.set()
                server.sendall(data)
        for end in (client, server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _replies(self, client: socket.socket, server: socket.socket, gate: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if gate.is_set():
                    self._left -= 1
                    self.swallowed += 1
                    break  # it was applied: the server has answered
                client.sendall(data)
        for end in (client, server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
