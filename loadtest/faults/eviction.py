"""eviction: the memory of Valkey is full, and it evicts keys to make room: the lock's key too.

Proof        `evicted_keys` of the server, and the lock's keys before and after.
Cannot touch what asks no Valkey, and what keeps no key there at that moment.
Cleans up    the server is the cell's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from loadtest.faults import touch
from loadtest.faults.base import Adversary
from loadtest.faults.scene import EASY_LEASE
from loadtest.servers import Valkey
from locks.hazards import Hazard

if TYPE_CHECKING:
    from loadtest.faults.scene import Scene
    from loadtest.faults.site import Site

ROOM = 1_000_000  # bytes
BLOCK = b"x" * 10_000
MOST = 3_000  # blocks


class Eviction(Adversary):
    slug = "eviction"
    word = Hazard.EVICTION
    own_valkey = True
    lease = EASY_LEASE

    def not_applicable(self, strategy: str) -> str | None:
        return touch.no_valkey(strategy)

    @contextmanager
    def site(self, shared: Site) -> Iterator[Site]:
        with Valkey(port=0, persistence="always") as server:
            yield shared.with_valkey(server)

    def strike(self, scene: Scene) -> None:
        if not (victim := scene.victim()):
            return
        before = scene.keys(balances=True)
        if not before:
            scene.cannot = "it keeps no key in Valkey while a worker is inside"
        with scene.site.redis() as client:
            used = int(client.info("memory")["used_memory"])
            client.config_set("maxmemory-policy", "allkeys-lru")
            client.config_set("maxmemory", used + ROOM)
            for number in range(MOST):
                client.set(f"filler:{number}", BLOCK)
                if number % 100 == 0 and not scene.keys(balances=True).keys() & before.keys():
                    break
            evicted = client.info("stats")["evicted_keys"]
        if gone := before.keys() - scene.keys(balances=True).keys():
            names = ", ".join(each.replace(str(scene.book.pk), "book") for each in sorted(gone)[:3])
            scene.prove(f"{evicted} keys evicted, of the book: {names}")
        scene.wait(scene.rush(), 0.3)
        scene.go_on(victim)
