"""The servers of one cell, and of the whole run. They are private, so that no hazard strikes what others use."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import mkdtemp

from django.core.management import call_command
from django.db import connections
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from redis import Redis

from ledger.resources import redis_client
from loadtest.faults.workers.addresses import WORKER_NAMES, connect_to
from loadtest.servers import MariaDB, Postgres, Valkey, ZooKeeper, zookeeper
from lost_update_lab.embedded import mariadb
from lost_update_lab.embedded.base import start_together
from lost_update_lab.embedded.reaper import REAPER

#: 200 waiters of each of three stampedes, and all other workers that stand ready
CONNECTIONS = 900
#: log_line_prefix: with the session's name. wal_keep_size: a replica that starts (replica-lag) still finds the WAL from
#: where its backup began, even if another session makes a checkpoint
POSTGRES_OPTIONS = {
    "fsync": "on",
    "max_connections": CONNECTIONS,
    "log_line_prefix": "%m [%p] %a ",
    "deadlock_timeout": "200ms",
    "max_wal_senders": 10,
    "wal_keep_size": "256MB",
}


@dataclass
class Site:
    """Where a cell's workers connect to. `env`: addresses that differ from those of this process. `sentinels`: if
    given, the workers' Redis client follows them. The rest are the servers themselves."""

    valkey: Valkey
    postgres: Postgres
    nodes: list[Valkey] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    sentinels: list[tuple[str, int]] = field(default_factory=list)
    mariadb: MariaDB | None = None
    zookeeper: ZooKeeper | None = None
    #: the judge's own client of ZooKeeper
    watcher: KazooClient | None = None

    def redis(self) -> Redis:
        """A client for the judge's own questions: direct to the server, even if the workers go through a proxy."""
        return self.valkey.client(socket_timeout=5)

    def valkeys(self) -> list[Valkey]:
        """All servers that may keep a lock of this cell."""
        return [self.valkey, *self.nodes]

    def nodes_in_zookeeper(self, book: str) -> list[str]:
        """Return the nodes of the book's locks, the holder's first."""
        if self.watcher is None:
            return []
        found = []
        with suppress(NoNodeError):
            for number in ("A0001", "A0002"):
                children = self.watcher.get_children(f"/locks/{book}:{number}")
                found += sorted(children, key=lambda name: name[-10:])
        return [f"…{name[-10:]}" for name in found]

    def move_to(self, valkey: Valkey) -> None:
        """From now on `valkey` is the cell's Valkey. The judge follows if it used the old one."""
        if os.environ["REDIS_URL"] == self.valkey.url:
            os.environ["REDIS_URL"] = valkey.url
            redis_client.cache_clear()
        self.valkey = valkey

    def with_valkey(self, valkey: Valkey, url: str = "", **env: str) -> Site:
        """Return the same site with another Valkey, which is also one of a majority's three nodes. `url`: its
        address."""
        others = self.nodes[:2]
        url = url or valkey.url
        nodes = ",".join([url, *(each.url for each in others)])
        return replace(self, valkey=valkey, nodes=others, env={"REDIS_URL": url, "REDIS_NODES": nodes, **env})


@contextmanager
def private_servers(*extra: str) -> Iterator[Site]:
    """Start PostgreSQL, Valkey with a replica, and three Valkeys for majorities; migrate; and connect this process to
    them until the end. `extra`: "mariadb" and "zookeeper", which start if they are installed."""
    before = {name: os.environ.get(name) for name in WORKER_NAMES}
    with ExitStack() as stack:
        folder = Path(mkdtemp(prefix="lab-faults-"))
        REAPER.remove(folder)
        stack.callback(REAPER.keep, folder)
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        stack.callback(connect_to, before)
        site = _started(stack, extra)
        nodes = ",".join(node.url for node in site.nodes)
        connect_to(
            {
                "DATABASE_URL": site.postgres.url,
                "REDIS_URL": site.valkey.url,
                "REDIS_NODES": nodes,
                "MARIADB_URL": site.mariadb.url if site.mariadb else None,
                "ZOOKEEPER_HOSTS": site.zookeeper.url if site.zookeeper else None,
                "LAB_DIR": str(folder),
            }
        )
        stack.callback(connections.close_all)
        for alias in ["default"] + ["mariadb"] * (site.mariadb is not None):
            call_command("migrate", verbosity=0, database=alias)
        if site.zookeeper:
            site.watcher = KazooClient(site.zookeeper.url)
            stack.callback(site.watcher.close)
            stack.callback(site.watcher.stop)
            site.watcher.start(15)
        yield site


def _started(stack: ExitStack, extra: tuple[str, ...]) -> Site:
    """Start all servers at once: initdb, MariaDB's installation and ZooKeeper's Java each take seconds."""
    # `durable` grants nothing without an append-only file, and `replicated` nothing without a replica
    valkey = Valkey(port=0, persistence="always")
    replica = Valkey(config={"replicaof": ("127.0.0.1", valkey.port)})
    nodes = [Valkey(port=0) for _ in range(3)]
    site = Site(valkey, Postgres(settings=POSTGRES_OPTIONS), nodes)
    if "mariadb" in extra and not mariadb.available():
        site.mariadb = MariaDB(settings={"innodb-buffer-pool-size": "32M", "max-connections": CONNECTIONS})
    if "zookeeper" in extra and not zookeeper.available():
        site.zookeeper = ZooKeeper()
    every = [site.postgres, valkey, replica, *nodes, site.mariadb, site.zookeeper]
    servers = [each for each in every if each]
    for each in servers:
        stack.callback(each.close)
    start_together(servers)
    return site


@contextmanager
def judged_on(site: Site) -> Iterator[None]:
    """Let this process open and reconcile on the cell's own Valkey, where the balances are. No other cell may run."""
    before = os.environ["REDIS_URL"]
    os.environ["REDIS_URL"] = site.valkey.url
    redis_client.cache_clear()
    try:
        yield
    finally:
        os.environ["REDIS_URL"] = before
        redis_client.cache_clear()
