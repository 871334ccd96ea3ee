"""transaction-pooler: the workers reach PostgreSQL through PgBouncer, which gives a session to each transaction.

What a session holds beyond a transaction belongs to nobody: the next transaction on that session, of any client,
finds it there. A session's advisory lock is granted again to the session that has it:

    victim  pg_advisory_lock (session 1) … SELECT → 100 ………………………………………… UPDATE 110 … unlock
    rival                                  pg_advisory_lock (session 1: granted) … SELECT → 100 … UPDATE 130

A transaction keeps its session to its end, and so its row locks and `pg_advisory_xact_lock`. The crowd connects without
the pooler. Museum case 27 is the same mistake in an operation of somebody's own, where the release goes astray.

Proof        PgBouncer's pool mode, whether the worker inside had a session at that moment, and how many transactions of
             others it passed on meanwhile.
Cannot touch balances outside PostgreSQL.
Cleans up    PgBouncer ends with the cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from loadtest.faults.hazards.adversary import Adversary
from loadtest.faults.scene.scene import EASY_LEASE, RIVALS
from loadtest.servers import pgbouncer
from loadtest.trials import dependencies
from locks.hazards import Hazard

if TYPE_CHECKING:
    from loadtest.faults.scene.scene import Scene
    from loadtest.faults.scene.site import Site


class TransactionPooler(Adversary):
    slug = "transaction-pooler"
    word = Hazard.TRANSACTION_POOLER
    lease = EASY_LEASE

    def not_applicable(self, strategy: str, store: str) -> str | None:
        return dependencies.no_postgres(store)

    def missing(self) -> tuple[str, str] | None:
        install = pgbouncer.available()
        return (f"no PgBouncer: {install}", f"apt-get {install}") if install else None

    @contextmanager
    def site(self, shared: Site) -> Iterator[Site]:
        """Yield the same servers. `self.pooler` stands before PostgreSQL."""
        with pgbouncer.PgBouncer(shared.postgres) as self.pooler:
            yield shared

    def strike(self, scene: Scene) -> None:
        way = {"DATABASE_URL": self.pooler.url}
        victim, *scene.rivals = (scene.hire(env=way) for _ in range(1 + RIVALS))
        if not scene.victim(worker=victim):
            return
        session, before = self.pooler.session_of(victim.pid), self.pooler.transactions()
        victim.inside = {
            **(victim.inside or {}),
            "session": session,
        }  # the worker knows only a made-up number
        scene.fault(f"worker {victim.pid} is behind PgBouncer, and so are the others")
        scene.ahead(0.4)
        passed = self.pooler.transactions() - before
        if passed:
            owns = f"session {session}" if session else "no session"
            told = (
                f"the worker inside had {owns}; {scene.held(victim)}; {passed} transactions passed meanwhile"
            )
            scene.prove(f"PgBouncer, pool_mode {self.pooler.mode()}: {told}")
        scene.go_on(victim)
