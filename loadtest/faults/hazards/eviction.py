"""eviction: Valkey's memory is full, and it evicts keys to make room, including the locks' keys.

Proof        the server's `evicted_keys`, and the lock's keys before and after.
Cannot touch a strategy that uses no Valkey, or keeps no key there at that moment.
Cleans up    the server belongs to the party.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from redis.exceptions import OutOfMemoryError

from loadtest.faults.hazards.adversary import PARTY_ENTERS, Party
from loadtest.faults.hazards.server_restart import pair
from loadtest.faults.scene.scene import EASY_LEASE
from locks.hazards import Hazard

if TYPE_CHECKING:
    from loadtest.faults.scene.scene import Scene
    from loadtest.faults.scene.site import Site

ROOM = 1_000_000  # bytes
BLOCK = b"x" * 10_000
MOST = 6_000  # blocks


class Eviction(Party):
    slug = "eviction"
    word = Hazard.EVICTION
    own_valkey = True
    lease = EASY_LEASE

    @contextmanager
    def site(self, shared: Site) -> Iterator[Site]:
        with pair("always") as server:
            yield shared.with_valkey(server)

    def event(self, site: Site) -> str:
        """Write until only our latest keys are left."""
        with site.redis() as client:
            used = int(client.info("memory")["used_memory"])
            client.config_set("maxmemory-samples", 10)
            client.config_set("maxmemory-policy", "allkeys-lru")
            client.config_set("maxmemory", used + ROOM)
            for number in range(0, MOST, 100):
                for each in range(number, number + 100):
                    with suppress(OutOfMemoryError):  # it evicts more slowly than we write
                        client.set(f"filler:{each}", BLOCK)
                if all(name.startswith(b"filler:") for name in client.scan_iter(count=1000)):
                    break
            # Make room again: otherwise every later command is refused (OOM), and nobody notices the eviction.
            client.config_set("maxmemory", 0)
            return f"{client.info('stats')['evicted_keys']} keys evicted"

    def strike(self, scene: Scene) -> None:
        self.occasion.meet(lambda: None)  # a slow crowd must not cost the workers inside their leases
        if not (victim := scene.victim(PARTY_ENTERS)):
            return
        before = scene.keys(balances=True)
        if not before:
            scene.cannot = "it keeps no key in Valkey while a worker is inside"
        seen = self.occasion.meet(lambda: self.event(scene.site))
        if gone := before.keys() - scene.keys(balances=True).keys():
            names = ", ".join(each.replace(str(scene.book.pk), "book") for each in sorted(gone)[:3])
            scene.fault(seen)
            scene.prove(f"{seen}, of the book: {names}")
        self.aftermath(scene)
        scene.go_on(victim)
