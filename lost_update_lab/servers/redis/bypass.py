"""Which client talks to a Redis server past the gates? The server's own list of clients tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redis.connection import AbstractConnection

from lost_update_lab.adapters import redis_py
from lost_update_lab.servers.connections_before import existing
from lost_update_lab.servers.redis.wire import address

Clients = dict[int, dict[str, str]]
#: address of a server → the numbers of the connections that were made to it
_made: dict[str, set[int]] = {}


class RedisBypassDetector:
    """`ask`: one round trip to the server. `address`: where it is, in its clients' terms."""

    def __init__(self, ask: Callable[..., Any], name: str, address: str) -> None:
        self.ask, self.name, self.address = ask, name, address
        self._before: Clients = {}
        self._received, self._known = 0, set[int]()

    def watch(self) -> None:
        """Remember how many clients have connected so far, and what the present ones have done."""
        self._ours(look=True)
        self._before = self._clients()
        self._received = self._connections_received()
        self._known = set(self._ours())

    def bypassed(self) -> str:
        ours, now = self._ours(), self._clients()
        bypassing = [c for number, c in now.items() if number not in ours and self._before.get(number) != c]
        if bypassing:
            client = bypassing[0]
            who = client.get("lib-name") or client.get("name") or "a client"
            return f"{who} (client {client['id']}, last command {client['cmd']}) talked to {self.name} past the gates"
        unknown = self._connections_received() - self._received - len(ours - self._known)
        return f"{unknown} clients came to {self.name} past the gates, and left again" if unknown > 0 else ""

    def _ours(self, look: bool = False) -> set[int]:
        return made(self.address, look)

    def _clients(self) -> dict[int, dict[str, str]]:
        """Number → what CLIENT LIST says of it, except what changes by itself. Without replicas, which report their
        progress by themselves."""
        found = {}
        for line in self.ask("CLIENT", "LIST").decode().splitlines():
            client = dict(word.split("=", 1) for word in line.split() if "=" in word)
            if "S" in client["flags"]:
                continue
            found[int(client["id"])] = {
                k: v for k, v in client.items() if k in ("id", "cmd", "lib-name", "tot-cmds")
            }
        return found

    def _connections_received(self) -> int:
        info = self.ask("INFO", "stats").decode()
        return int(info.split("total_connections_received:")[1].split("\r\n")[0])


def note(connection: Any) -> None:
    """Ask for the number of the connection, CLIENT ID. The server's list of clients uses it, so a bypass shows."""
    redis_py.send(connection, connection.pack_command("CLIENT", "ID"), check_health=False)
    connection.explorer_number = number = int(redis_py.read(connection))
    _made.setdefault(address(connection), set()).add(number)


def made(target: str, look: bool = False) -> set[int]:
    """The numbers of all connections to this server that redis-py has in this process, or had since the gates were
    installed. `look` for those that existed before. Connections to other servers are left alone."""
    for connection in existing(AbstractConnection) if look else ():
        if (
            redis_py.socket(connection)
            and not hasattr(connection, "explorer_number")
            and address(connection) == target
        ):
            note(connection)
    return _made.setdefault(target, set())
