"""zookeeper-session-expiry: the holder's heartbeats do not arrive, its session expires, and its node with it.

    victim   node 33 …… SELECT → 100 ……╳ heartbeat ╳ ………………………………………………… UPDATE 110
    server                                 session over, node 33 deleted
    rival                                        node 41 …… SELECT → 100 …… UPDATE 130

Proof        the node is there before and gone after, as the judge's own ZooKeeper client sees it.
Cannot touch a strategy that uses no ZooKeeper.
Cleans up    the proxy ends with the cell.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from loadtest.faults.hazards.adversary import Adversary
from loadtest.faults.scene.proxy import Proxy
from loadtest.trials import dependencies
from locks.hazards import Hazard

if TYPE_CHECKING:
    from loadtest.faults.scene.scene import Scene
    from loadtest.faults.scene.site import Site


class ZooKeeperExpiry(Adversary):
    slug = "zookeeper-session-expiry"
    word = Hazard.ZOOKEEPER_EXPIRY
    lease = 1.0

    def not_applicable(self, strategy: str, store: str) -> str | None:
        return dependencies.no_zookeeper(strategy)

    @contextmanager
    def site(self, shared: Site) -> Iterator[Site]:
        with Proxy(shared.zookeeper.port if shared.zookeeper else None) as self.proxy:
            yield shared

    def strike(self, scene: Scene) -> None:
        victim = scene.hire(env={"ZOOKEEPER_HOSTS": f"127.0.0.1:{self.proxy.port}"})
        if not scene.victim(worker=victim):
            return
        book = str(scene.book.pk)
        before, begin = scene.site.nodes_in_zookeeper(book), time.monotonic()
        self.proxy.cut()
        scene.fault("the heartbeats of the worker inside are cut off")
        while before and before[0] in (after := scene.site.nodes_in_zookeeper(book)):
            if time.monotonic() > begin + 10:
                break
            time.sleep(0.02)
        if before and before[0] not in after:
            spent = time.monotonic() - begin
            scene.fault("its session is over, its node is gone")
            scene.prove(
                f"node {before[0]} gone after {spent:.2f} s without heartbeats; left: {after or 'none'}"
            )
        scene.ahead(1.0)
        scene.go_on(victim, outlasts=True)
        self.proxy.mend()
        scene.fault("the network is mended")
