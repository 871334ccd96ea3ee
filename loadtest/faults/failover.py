"""failover: the lock is written to the primary only, the primary dies, a replica is promoted: who has the lock now?

A primary, 2 replicas, 3 sentinels; the clients ask the sentinels. The replicas are cut off before the lock is
taken, so that it is lost for certain and not by luck. A lock that waits for a replica refuses then.

Proof        the role of the promoted server, and the lock's keys on the old and on the new primary.
Cannot touch what asks no Valkey; independent nodes (Redlock); a client that was given one address.
Cleans up    all six servers are the cell's own.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from loadtest.faults import touch
from loadtest.faults.base import Adversary
from loadtest.faults.scene import EASY_LEASE
from loadtest.servers import ReplicaSet
from locks.hazards import Hazard

if TYPE_CHECKING:
    from loadtest.faults.scene import Scene
    from loadtest.faults.site import Site


class Failover(Adversary):
    slug = "failover"
    word = Hazard.FAILOVER
    own_valkey = True
    lease = EASY_LEASE

    def not_applicable(self, strategy: str) -> str | None:
        if lock := touch.factory_of(strategy):
            asks = inspect.signature(lock).parameters.keys()  # type: ignore[arg-type]
            if "redis_nodes" in asks and "redis" not in asks:
                return "its nodes are independent of each other: none follows another"
            if "cache" in asks:
                return "Django's cache is configured with one address here: it follows no sentinel"
        return touch.no_valkey(strategy)

    @contextmanager
    def site(self, shared: Site) -> Iterator[Site]:
        with ReplicaSet(persistence="always") as self.servers:
            site = shared.with_valkey(self.servers.primary)
            site.sentinels = self.servers.addresses
            yield site

    def strike(self, scene: Scene) -> None:
        old = self.servers.primary
        self.servers.await_replication()
        self.servers.sever()
        if (
            scene.book.store == "redis"
        ):  # not a lock but the balance itself: acknowledged by the primary alone
            scene.wait(scene.rush(1), 5)
        victim = scene.victim()
        before = scene.held(victim) if victim else "the lock was not granted without its replicas"
        old.kill()
        for server in self.servers.servers:
            if server is not old:
                server.resume()
        new = self.servers.await_failover(old)
        scene.site.move_to(new)
        role = new.info("replication")["role"]
        after = scene.held(victim) if victim else "nothing"
        scene.prove(
            f"primary on port {old.port} killed, port {new.port} is {role}; before: {before}; after: {after}"
        )
        scene.wait(scene.rush(), 0.5)
        if victim:
            scene.go_on(victim)
