"""failover: the lock is written to the primary only, the primary dies, a replica is promoted. Who has the lock now?

    failover            the replicas are cut off before the lock is taken, so that it is certainly lost, and not by
                        luck. A lock that waits for a replica (`replicated`, WAIT) then refuses. A lock that continues
                        without an answer (`replicated-as-published`: semi-synchronous, degraded to asynchronous)
                        is granted, and lost
    failover-release    the replicas have the lock, and are cut off before its release: the new primary still has the
                        lock of a worker that finished long ago

A primary, 2 replicas, 3 sentinels. The clients ask the sentinels.

Proof        the role of the promoted server, and the lock's keys on the old and the new primary.
Cannot touch a strategy that uses no Valkey; independent nodes (Redlock); a client that was given one address.
Cleans up    all six servers belong to the party.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from loadtest.faults.hazards.adversary import PARTY_ENTERS, Party
from loadtest.faults.scene.scene import EASY_LEASE
from loadtest.servers import ReplicaSet
from loadtest.trials import dependencies
from locks.hazards import Hazard

if TYPE_CHECKING:
    from loadtest.faults.scene.scene import Scene
    from loadtest.faults.scene.site import Site


class Failover(Party):
    slug = "failover"
    lasts = 10.0
    word = Hazard.FAILOVER
    own_valkey = True
    lease = EASY_LEASE

    def not_applicable(self, strategy: str, store: str) -> str | None:
        return dependencies.no_sentinel(strategy) or super().not_applicable(strategy, store)

    @contextmanager
    def site(self, shared: Site) -> Iterator[Site]:
        with ReplicaSet(persistence="always") as self.servers:
            site = shared.with_valkey(self.servers.primary)
            site.sentinels = self.servers.addresses
            yield site

    def prepare(self, site: Site) -> None:
        self.cut_off()

    def cut_off(self) -> None:
        self.servers.await_replication()
        self.servers.sever()

    def event(self, site: Site) -> str:
        old = self.servers.primary
        old.kill()
        for server in self.servers.servers:
            if server is not old:
                server.resume()
        new = self.servers.await_failover(old)
        site.move_to(new)
        role = new.info("replication")["role"]
        return f"primary on port {old.port} killed, port {new.port} is {role}" if role == "master" else ""


class FailoverRelease(Failover):
    slug = "failover-release"
    lasts = 20.0

    def not_applicable(self, strategy: str, store: str) -> str | None:
        return dependencies.no_lock(strategy) or super().not_applicable(strategy, store)

    def strike(self, scene: Scene) -> None:
        self.occasion.meet(lambda: None)  # a slow crowd must not cost the workers inside their leases
        if not (victim := scene.victim(PARTY_ENTERS)):
            return
        self.occasion.meet(self.cut_off)
        before = scene.held(victim)
        scene.go_on(victim)
        if not scene.wait([victim], PARTY_ENTERS):
            return
        between = scene.held(victim)
        scene.hazard_comes()
        scene.leases = 1  # that of the lock that comes back
        seen = self.occasion.meet(lambda: self.event(scene.site))
        if seen and scene.keys():  # otherwise its lease was over, so no lock could come back
            scene.fault(seen)
            scene.prove(f"{seen}; before: {before}; released: {between}; after: {scene.held(victim)}")
        scene.rush()
