"""A worker's way to the servers: their addresses, and which Redis client it uses."""

from __future__ import annotations

import os
from typing import Any

from redis import Redis
from redis.connection import parse_url
from redis.sentinel import Sentinel

from ledger import resources
from loadtest.faults.workers.addresses import WORKER_NAMES, connect_to
from lost_update_lab.embedded.replication import PRIMARY_NAME


class WayToServers:
    """How this process reaches the servers. The next cell may send it elsewhere."""

    def __init__(self) -> None:
        self._client = vars(resources)["Redis"]
        self._at_first = {name: os.environ.get(name) for name in (*WORKER_NAMES, "LAB_CLIENT")}
        self._now = dict(self._at_first)

    def take(self, env: dict[str, str], sentinels: list[Any]) -> None:
        wanted = {**self._at_first, **env}
        if changed := {name: value for name, value in wanted.items() if value != self._now.get(name)}:
            connect_to(changed)
        self._now = wanted
        client: Any = self._client
        if sentinels:
            client, Following.sentinels = Following, sentinels
        elif wanted["LAB_CLIENT"] == "as-it-comes":
            client = AsItComes
        if client is not vars(resources)["Redis"] or sentinels:
            vars(resources)["Redis"] = client
            resources.redis_client.cache_clear()


class Following:
    """Replaces the ledger's Redis client with one that asks the sentinels for the primary."""

    sentinels: list[Any] = []

    @classmethod
    def from_url(cls, url: str, **options: Any) -> Any:
        return Sentinel(cls.sentinels, socket_timeout=1).master_for(PRIMARY_NAME, socket_timeout=4, **options)


class AsItComes:
    """Replaces it with a client that has redis-py's own defaults, which re-send a command whose reply did not come.
    `Redis.from_url` does not use these defaults: its pool re-sends nothing."""

    @classmethod
    def from_url(cls, url: str, **options: Any) -> Any:
        where = parse_url(url)
        where.pop("connection_class", None)
        if path := where.pop("path", None):
            where["unix_socket_path"] = path
        return Redis(**where, **{name: value for name, value in options.items() if name != "retry"})
