"""The servers of one cell, and of the whole run: private ones, so that no hazard strikes what others use."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.db import connections
from environ import Env
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from ledger.resources import redis_client
from loadtest.servers import Postgres, Valkey
from loadtest.servers.reaper import REAPER


@dataclass
class Site:
    """Where a cell's workers connect to. `env`: addresses that differ from those of this process.
    `sentinels`: given, the workers' Redis client follows them. `valkey`, `postgres`: the servers themselves."""

    valkey: Valkey
    postgres: Postgres
    nodes: list[Valkey] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    sentinels: list[tuple[str, int]] = field(default_factory=list)

    def redis(self) -> Redis:
        """A client for the judge's own questions: straight to the server, whatever the workers go through."""
        return self.valkey.client(socket_timeout=5)

    def valkeys(self) -> list[Valkey]:
        """All servers on which a lock of this cell may lie."""
        return [self.valkey, *self.nodes]

    def move_to(self, valkey: Valkey) -> None:
        """From now on this is the cell's Valkey; the judge follows if he was on the old one."""
        if os.environ["REDIS_URL"] == self.valkey.url:
            os.environ["REDIS_URL"] = valkey.url
            redis_client.cache_clear()
        self.valkey = valkey

    def with_valkey(self, valkey: Valkey, **env: str) -> Site:
        """The same with another Valkey, which is one of the three nodes of a majority too."""
        others = self.nodes[:2]
        nodes = ",".join(each.url for each in (valkey, *others))
        return Site(valkey, self.postgres, others, {"REDIS_URL": valkey.url, "REDIS_NODES": nodes, **env})


@contextmanager
def private_servers() -> Iterator[Site]:
    """PostgreSQL, Valkey and three Valkeys for majorities, migrated, and this process on them until the end."""
    names = ("DATABASE_URL", "REDIS_URL", "REDIS_NODES", "ZOOKEEPER_HOSTS", "LAB_DIR")
    before = {name: os.environ.get(name) for name in names}
    with ExitStack() as stack:
        folder = Path(mkdtemp(prefix="lab-faults-"))
        REAPER.remove(folder)
        stack.callback(REAPER.keep, folder)
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        stack.callback(_move, before)
        postgres = stack.enter_context(Postgres(settings={"fsync": "on", "max_connections": 150}))
        # durable and replicated grant nothing without an append-only file, or without a replica
        valkey = stack.enter_context(Valkey(port=0, persistence="always"))
        stack.enter_context(Valkey(config={"replicaof": ("127.0.0.1", valkey.port)}))
        nodes = [stack.enter_context(Valkey(port=0)) for _ in range(3)]
        _move(
            {
                "DATABASE_URL": postgres.url,
                "REDIS_URL": valkey.url,
                "REDIS_NODES": ",".join(node.url for node in nodes),
                "ZOOKEEPER_HOSTS": settings.ZOOKEEPER_HOSTS or None,  # shared: no hazard here strikes it
                "LAB_DIR": str(folder),
            }
        )
        stack.callback(connections.close_all)
        call_command("migrate", verbosity=0)
        yield Site(valkey, postgres, nodes)


def _move(env: Mapping[str, str | None]) -> None:
    """Let this process, and those that it starts, connect to `env` from now on."""
    connections.close_all()
    for name, value in env.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    redis_client.cache_clear()
    if url := os.environ.get("DATABASE_URL"):
        wanted: dict[str, Any] = {**settings.DATABASES["default"], **Env.db_url_config(url)}
        wanted["ENGINE"] = "django.db.backends.postgresql"
        connections.settings = connections.configure_settings({**settings.DATABASES, "default": wanted})
        for alias in list(connections):
            if hasattr(connections._connections, alias):
                delattr(connections._connections, alias)
    settings.REDIS_NODES = [each for each in os.environ.get("REDIS_NODES", "").split(",") if each]


@contextmanager
def judged_on(site: Site) -> Iterator[None]:
    """This process opens and reconciles on the cell's own Valkey, where the balances lie: no other cell may run."""
    before = os.environ["REDIS_URL"]
    os.environ["REDIS_URL"] = site.valkey.url
    redis_client.cache_clear()
    try:
        yield
    finally:
        os.environ["REDIS_URL"] = before
        redis_client.cache_clear()


def patient(url: str) -> Redis:
    """A client that re-sends nothing."""
    return Redis.from_url(url, retry=Retry(NoBackoff(), 0))
