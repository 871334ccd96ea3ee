"""connection-exhaustion: PostgreSQL and Valkey accept no more connections while workers are inside.

Workers that are inside have their connections and continue. Workers that come later need new connections and are
refused. Then connections become available again. Does every worker recover by itself?

Proof        PostgreSQL's refusal in its own words, and how many connections Valkey refused meanwhile.
Cannot touch balances in MariaDB: its connections are not exhausted here.
Cleans up    all connections are closed and the limit is lifted before the cell ends, also if it fails. No other cell
             runs meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg

from loadtest.faults.hazards.adversary import Party
from loadtest.faults.scene.scene import EASY_LEASE
from loadtest.faults.scene.site import CONNECTIONS
from locks.hazards import Hazard

if TYPE_CHECKING:
    from redis import Redis

    from loadtest.faults.scene.scene import Scene
    from loadtest.faults.scene.site import Site

REFUSED = 0.6  # seconds in which no worker gets a connection
MOST = 1200
#: connections that stay free for the workers until all of them are inside
LEFT = 200
OPEN = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"


class ConnectionExhaustion(Party):
    slug = "connection-exhaustion"
    word = Hazard.CONNECTIONS
    alone = True
    party = 32
    lease = EASY_LEASE

    def not_applicable(self, strategy: str, store: str) -> str | None:
        return "MariaDB's connections are not exhausted here" if store == "mariadb" else None

    @contextmanager
    def site(self, shared: Site) -> Iterator[Site]:
        """Yield the same servers. `self.admin` connects before they are full."""
        self.taken: list[psycopg.Connection[object]] = []
        with shared.redis() as self.admin:
            self.admin.ping()
            try:
                yield shared
            finally:
                self.free(self.admin)

    def strike(self, scene: Scene) -> None:
        self.occasion.meet(lambda: self.prepare(scene.site))
        victim, refused = self.enters(scene)
        if not victim and not refused:
            return
        for number, rival in enumerate(each for each in scene.rivals if not each.busy):
            rival.asks("call", "disconnect", number == 0)  # the others lose only Valkey
            scene.struck.add(rival)
        before = scene.held(victim) if victim else refused
        seen = self.occasion.meet(lambda: self.event(scene.site))
        if seen:
            scene.fault("no connections are left")
        scene.ahead(REFUSED / 2)
        if victim:
            scene.go_on(victim)
        told = self.occasion.meet(lambda: self.relief(scene.site))
        if seen:
            scene.fault("connections are available again")
            scene.prove(f"{seen}; {told}; before: {before}")
        scene.wait(scene.rivals, 3)
        scene.rush()

    def prepare(self, site: Site) -> None:
        """Take most of the connections before any worker is inside: that takes seconds, and on a slow machine as long
        as a lease."""
        self.taken.append(first := site.postgres.connect(autocommit=True))
        (known,) = first.execute(OPEN).fetchone() or (0,)
        self.taken += [site.postgres.connect() for _ in range(int(str(known)), CONNECTIONS - LEFT)]

    def event(self, site: Site) -> str:
        stats = self.admin.info()
        self.rejected = stats["rejected_connections"]
        self.admin.config_set("maxclients", max(1, stats["connected_clients"]))
        self.began = time.monotonic()
        try:
            while len(self.taken) < MOST:
                self.taken.append(site.postgres.connect())
        except psycopg.OperationalError as error:
            refusal = str(error).strip().rpartition("FATAL:")[2].strip()
            return f"after {len(self.taken)} connections of the lab, PostgreSQL said: {refusal}"
        return ""

    def relief(self, site: Site) -> str:
        time.sleep(max(0.0, self.began + REFUSED - time.monotonic()))
        rejected = self.admin.info("stats")["rejected_connections"] - self.rejected
        self.free(self.admin)
        until = time.monotonic() + 5
        while time.monotonic() < until:  # a backend takes a moment to end
            try:
                site.postgres.connect().close()
                break
            except psycopg.OperationalError:
                time.sleep(0.02)
        return f"Valkey refused {rejected} connections"

    def free(self, admin: Redis) -> None:
        admin.config_set("maxclients", 10_000)
        while self.taken:
            self.taken.pop().close()
