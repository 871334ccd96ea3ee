"""partition: a worker that is inside is cut off from the server that keeps its lock; others still reach that server.

    partition            nothing gets through, in both directions
    partition-one-way    the worker's requests arrive, the replies do not
    slow-network         all of its traffic takes 0.1 s in each direction, from before it takes the lock

    victim   lock …… SELECT → 100 ……╳ renewal ╳ renewal ……………… UPDATE 110 …… release (late)
    rival                                lease over? lock …… SELECT → 100 …… UPDATE 130

The cut outlasts the lease of a lock that is renewed. It is shorter than the lease of a lock that is not renewed, as
that would just be `overrun` again. Another worker behind the cut wants the account too: it must not go in without the
lock. Of a majority's nodes, one is cut off. A strategy that uses neither Valkey nor ZooKeeper is cut off from
PostgreSQL: either its lock is a row there, or it loses the balances while it holds a lock that no network can cut.

Proof        what the proxy held back while the worker was inside, and for how long; the lock's keys at that time.
Cannot touch balances in MariaDB: there is no proxy in front of it here.
Cleans up    the proxies end with the cell.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, ClassVar

from loadtest.faults.hazards.adversary import Adversary
from loadtest.faults.scene import scaled
from loadtest.faults.scene.proxy import Proxy
from loadtest.faults.scene.scene import EASY_LEASE
from loadtest.trials import dependencies
from locks.hazards import Hazard

if TYPE_CHECKING:
    from loadtest.faults.scene.scene import Scene
    from loadtest.faults.scene.site import Site


class Partition(Adversary):
    slug = "partition"
    word = Hazard.PARTITION
    requests: ClassVar[bool] = True

    def lease_of(self, strategy: str) -> float:
        return scaled.lease_of(strategy) if dependencies.keeps_alive(strategy) else EASY_LEASE

    def not_applicable(self, strategy: str, store: str) -> str | None:
        return None if store != "mariadb" else "there is no proxy in front of MariaDB here"

    @contextmanager
    def site(self, shared: Site) -> Iterator[Site]:
        """Yield the same servers. `self.env` is the path to them that can be cut."""
        with ExitStack() as stack:
            self.valkey = stack.enter_context(Proxy(shared.valkey.port))
            node = stack.enter_context(Proxy(shared.nodes[0].port))
            self.proxies = [self.valkey, node]
            nodes = ",".join([node.url, *(each.url for each in shared.nodes[1:])])
            self.env = {"REDIS_URL": self.valkey.url, "REDIS_NODES": nodes}
            if shared.zookeeper:
                keeper = stack.enter_context(Proxy(shared.zookeeper.port))
                self.proxies.append(keeper)
                self.env["ZOOKEEPER_HOSTS"] = f"127.0.0.1:{keeper.port}"
            self.sql = stack.enter_context(Proxy(shared.postgres.run / ".s.PGSQL.5432"))
            yield shared

    def way(self, scene: Scene) -> dict[str, str]:
        """Return the addresses of a worker behind the cut."""
        if dependencies.asks_a_server(scene.book.strategy) or scene.book.store == "redis":
            return self.env
        self.proxies = [self.sql]
        tcp = f"postgresql://lab@127.0.0.1:{self.sql.port}/lab?sslmode=disable&gssencmode=disable"
        return {"DATABASE_URL": tcp}

    def strike(self, scene: Scene) -> None:
        env = self.way(scene)
        victim, other = scene.hire(env=env), scene.hire(env=env)
        if not scene.victim(worker=victim):
            return
        before, begin = scene.held(victim), time.monotonic()
        self.cut()
        scene.fault(f"worker {victim.pid} is cut off")
        outlasts = dependencies.keeps_alive(scene.book.strategy)
        cut = max(1.2, 2.5 * scene.lease) if outlasts else 1.2
        scene.posts(other)
        scene.ahead(cut)
        time.sleep(max(0.0, begin + cut - time.monotonic()))
        after, held = scene.held(victim), sum(each.held for each in self.proxies)
        spent = time.monotonic() - begin
        told = f"cut off for {spent:.2f} s of a lease of {scene.lease:.2f} s, {held} pieces held back"
        if held:
            scene.prove(f"{told}; before: {before}; after: {after}")
        scene.go_on(victim, outlasts=outlasts)
        scene.wait([victim], 0.3)
        for each in self.proxies:
            each.mend()
        scene.fault("the network is mended")

    def cut(self) -> None:
        for each in self.proxies:
            each.cut(requests=self.requests)


class PartitionOneWay(Partition):
    slug = "partition-one-way"
    requests = False


class SlowNetwork(Partition):
    slug = "slow-network"
    DELAY = 0.1

    def lease_of(self, strategy: str) -> float:
        return 3.0  # long enough for a slow machine, because this is not an overrun

    def strike(self, scene: Scene) -> None:
        env = self.way(scene)
        victim = scene.hire(env=env)
        for each in self.proxies:
            each.delay = self.DELAY
        scene.fault(f"from here on the network takes {self.DELAY} s in each direction")
        asked = time.monotonic()
        if not scene.victim(worker=victim):
            return
        begin, slow = time.monotonic(), sum(each.delayed for each in self.proxies)
        if slow:
            told = f"{slow} pieces took {self.DELAY} s each: {begin - asked:.2f} s to get inside"
            scene.prove(f"{told}; {scene.held(victim)}")
        scene.wait(scene.rush(), 0.4 * scene.lease)
        time.sleep(max(0.0, begin + 0.4 * scene.lease - time.monotonic()))
        scene.go_on(victim)
