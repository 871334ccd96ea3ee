"""Several clients that want one lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from locks import LockFactory
from tests.contract.party import Party
from tests.contract.promises import demand
from tests.contract.site import Site, lease_of
from tests.contract.workers import Worker

if TYPE_CHECKING:
    from tests.contract.arena import Arena


class Fight:
    """Several parties and processes that want the lock of one name."""

    def __init__(self, arena: Arena, factory: LockFactory, name: str, settings: dict[str, Any]) -> None:
        self.arena, self.factory, self.name, self.settings = arena, factory, name, settings
        self.site = arena.site
        self.lease: float = settings.get("lease", lease_of(factory))
        self._parties: list[Party] = []
        self._processes: list[Worker] = []

    def party(self, site: Site | None = None, **settings: Any) -> Party:
        party = Party(self.factory, self.name, site or self.site, **{**self.settings, **settings})
        self._parties.append(party)
        return party

    def holder(self, **settings: Any) -> Party:
        party = self.party(**settings)
        demand(party.takes(), "no other client wants the lock, but it was not granted")
        return party

    def process(self) -> Worker:
        """Return a process that has a lock object, and obeys orders."""
        worker = self.arena.workers.hire(self.factory, self.name, self.site, self.settings)
        self._processes.append(worker)
        return worker

    def forgets(self) -> None:
        """Delete the lock on the server. For its clients, an expiry, an eviction or a restart looks like this."""
        for admin, key in self.arena.keys(self.name):
            admin.delete(key)

    def passes_time(self, left: float) -> float:
        """Shorten the lease on the server to `left` seconds. Return by how much."""
        taken = 0.0
        for admin, key in self.arena.keys(self.name):
            now = admin.pttl(key) / 1000
            if now > left:
                taken = max(taken, now - left)
                admin.pexpire(key, max(1, int(left * 1000)))
        return taken

    def remains(self) -> float:
        """Return the seconds that remain of the lease. 0: the key is gone. -1: it never expires."""
        times = [admin.pttl(key) for admin, key in self.arena.keys(self.name)]
        if -1 in times:
            return -1.0
        return max(
            (time / 1000 for time in times if time >= 0), default=0.0
        )  # -2: it ended after it was found

    def closed(self, told: str) -> None:
        """Demand that a new client does not get in."""
        newcomer = self.party()
        demand(not newcomer.gets_in(), told)

    def opens_within(self, seconds: float, told: str) -> None:
        """Demand that a new client gets in, in time."""
        newcomer = self.party()
        demand(newcomer.waits_and_gets_in(seconds), f"{told} (not within {seconds:.1f} s)")
        newcomer.begins(newcomer.leaves).result()

    def ends(self) -> None:
        for each in (*self._processes, *self._parties):
            each.dies()
        self.forgets()
