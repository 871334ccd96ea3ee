"""Who talks to a Redis server past the gates? Its own list of clients tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Clients = dict[int, dict[str, str]]


class Strangers:
    """`ask`: one round trip to the server. `address`: where it is, as its clients name it."""

    def __init__(self, ask: Callable[..., Any], name: str, address: str) -> None:
        self.ask, self.name, self.address = ask, name, address
        self._before: Clients = {}
        self._received, self._known = 0, set[int]()

    def watch(self) -> None:
        """Remember how many clients came so far, and what those that are here have done."""
        self._ours(look=True)
        self._before = self._clients()
        self._received = self._connections_received()
        self._known = set(self._ours())

    def around(self) -> str:
        ours, now = self._ours(), self._clients()
        strangers = [c for number, c in now.items() if number not in ours and self._before.get(number) != c]
        if strangers:
            client = strangers[0]
            who = client.get("lib-name") or client.get("name") or "a client"
            return f"{who} (client {client['id']}, last command {client['cmd']}) talked to {self.name} past the gates"
        unknown = self._connections_received() - self._received - len(ours - self._known)
        return f"{unknown} clients came to {self.name} past the gates, and left again" if unknown > 0 else ""

    def _ours(self, look: bool = False) -> set[int]:
        from lost_update_lab.gates.redis.connections import made

        return made(self.address, look)

    def _clients(self) -> dict[int, dict[str, str]]:
        """Number → what CLIENT LIST says of it, without what changes by itself; no replicas, which report by
        themselves how far they are."""
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
