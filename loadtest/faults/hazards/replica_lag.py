"""replica-lag: plain reads of a balance are answered by a PostgreSQL replica that lags behind.

A router that sends reads to a replica is common. Such a read may be stale, however well the section is locked:

    A   lock …… SELECT (replica) → 100 …… UPDATE 110 (primary) …… unlock
    B                                                               lock …… SELECT (replica) → 100 …… UPDATE 130

The replica's replay is paused (`pg_wal_replay_pause`), and continues after a second.

Proof        the WAL that the replica has received but not replayed, in bytes, and how many balances it was asked for.
Cannot touch a strategy that reads the balance in the statement or transaction that writes it: the replica is not asked.
Cleans up    the replica belongs to the party.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from loadtest.faults.hazards.adversary import Party
from loadtest.faults.scene.scene import EASY_LEASE
from loadtest.faults.scene.site import POSTGRES_OPTIONS
from loadtest.servers import Postgres, ServerError
from loadtest.trials import dependencies
from locks.hazards import Hazard

if TYPE_CHECKING:
    from loadtest.faults.scene.scene import Scene
    from loadtest.faults.scene.site import Site

LAG = 1.0  # seconds at least


class ReplicaLag(Party):
    slug = "replica-lag"
    word = Hazard.REPLICA_LAG
    party = 16
    lasts = 8.0
    lease = EASY_LEASE

    def not_applicable(self, strategy: str, store: str) -> str | None:
        return dependencies.no_postgres(store)

    @contextmanager
    def site(self, shared: Site) -> Iterator[Site]:
        self.replica = Postgres(settings={**POSTGRES_OPTIONS, "hot_standby": "on"})
        try:
            done = shared.postgres.tool(
                "pg_basebackup", "-D", str(self.replica.data), "-R", "-X", "stream", "-c", "fast",
                "-h", str(shared.postgres.run), "-U", "lab",
            )  # fmt: skip
            if done.returncode:
                raise ServerError(f"pg_basebackup: {done.stderr}")
            self.replica.prepare()
            super(Postgres, self.replica).start()
            yield shared
        finally:
            self.replica.close()

    def prepare(self, site: Site) -> None:
        with (
            site.postgres.connect(autocommit=True) as primary,
            self.replica.connect(autocommit=True) as replica,
        ):
            (here,) = primary.execute("SELECT pg_current_wal_lsn()::text").fetchone() or ("",)
            until = time.monotonic() + 20
            sql = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
            while replica.execute(sql, [here]).fetchone() != (True,):
                if time.monotonic() > until:
                    raise ServerError("the replica did not catch up within 20 s")
                time.sleep(0.02)
            replica.execute("SELECT pg_wal_replay_pause()")
            self.began = time.monotonic()

    def event(self, site: Site) -> str:
        time.sleep(max(0.0, self.began + LAG - time.monotonic()))
        with self.replica.connect(autocommit=True) as replica:
            row = replica.execute(
                "SELECT pg_wal_lsn_diff(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())::bigint"
            ).fetchone()
            replica.execute("SELECT pg_wal_replay_resume()")
            self.resumed = time.monotonic()
        behind = row[0] if row else 0
        return f"the replica was {behind} bytes behind" if behind else ""

    def strike(self, scene: Scene) -> None:
        readers = scene.rivals[:2]
        scene.struck.update(readers)
        for each in readers:
            each.asks("call", "read_from", self.replica.url)
        self.occasion.meet(lambda: self.prepare(scene.site))
        for each in readers:
            scene.posts(each, 3)
        scene.wait(readers, LAG)
        seen = self.occasion.meet(lambda: self.event(scene.site))
        if not scene.wait(readers, 3):
            return
        asked = [at for each in readers for at in each.asks("call", "reads_elsewhere")]
        meanwhile = sum(self.began < at < self.resumed for at in asked)
        if not asked:
            scene.cannot = "it reads the balance where it writes it, so it never asks the replica"
        elif seen and meanwhile:
            scene.fault("the replica begins to lag behind", self.began)
            scene.fault("the replica catches up", self.resumed)
            scene.prove(f"{seen} and answered {meanwhile} reads of a balance")
