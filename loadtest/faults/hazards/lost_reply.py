"""lost-reply: a command that changes something is executed, but its reply never arrives. Who has the lock now?

    posting 1   lock …… SELECT → 100 …… UPDATE 110 …… release, its answer is lost
    posting 2   lock, its answer is lost

    lost-reply           the client re-sends nothing, like the lab's own clients
    lost-reply-retried   redis-py with its defaults: it reconnects and sends the command a second time, even one that
                         is not idempotent

A lock that is renewed has a lease of 3 s here. So a holder that got it by a lost reply holds it for good, not just
until a machine that stands still for a second is too late to renew it.

Proof        the commands whose replies the proxy threw away, and the server's keys after each.
Cannot touch a strategy that uses no Valkey.
Cleans up    the proxy ends with the cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from loadtest.faults.hazards.adversary import Adversary
from loadtest.faults.scene.proxy import Proxy
from loadtest.faults.scene.scene import ENTER
from loadtest.trials import dependencies
from locks.hazards import Hazard

if TYPE_CHECKING:
    from loadtest.faults.scene.scene import Scene
    from loadtest.faults.scene.site import Site
    from loadtest.faults.workers.crew import CrewWorker


RENEWED = 3.0  # seconds; renewed after every third of it


class LostReply(Adversary):
    slug = "lost-reply"
    word = Hazard.LOST_REPLY
    lasts = 11.0
    client: ClassVar[str] = ""
    known = 0  # replies that have already been recorded as lost

    def not_applicable(self, strategy: str, store: str) -> str | None:
        return dependencies.no_valkey(strategy, store)

    def lease_of(self, strategy: str) -> float:
        return RENEWED if dependencies.keeps_alive(strategy) else super().lease_of(strategy)

    @contextmanager
    def site(self, shared: Site) -> Iterator[Site]:
        with Proxy(shared.valkey.port) as self.proxy:
            nodes = ",".join([self.proxy.url, *(node.url for node in shared.nodes[:2])])
            env = {"REDIS_URL": self.proxy.url, "REDIS_NODES": nodes, "LAB_CLIENT": self.client}
            yield replace(shared, env=env)

    def strike(self, scene: Scene) -> None:
        worker = scene.hire()
        scene.struck.add(worker)
        scene.posts(worker)  # so that what a client asks only once (a server's version, its scripts) is done
        if not scene.wait([worker], ENTER):
            return
        scene.hazard_comes()
        for loses in (self.leaving, self.entering):
            if not worker.busy:
                loses(scene, worker)
        scene.rush()

    def leaving(self, scene: Scene, worker: CrewWorker) -> None:
        """Lose the reply to what follows the business: the release, or the one command that writes the balance."""
        if scene.victim(worker=worker):
            self.proxy.swallow()
            scene.go_on(worker)
            self.lost(scene, worker, "at its end")

    def entering(self, scene: Scene, worker: CrewWorker) -> None:
        self.proxy.swallow()
        scene.posts(worker)
        self.lost(scene, worker, "at its beginning")

    def lost(self, scene: Scene, worker: CrewWorker, when: str) -> None:
        scene.wait([worker], 2)
        self.proxy.disarm()
        if hit := self.proxy.swallowed[self.known :]:
            left = "; ".join(scene.keys().values()) or "no key"
            told = (worker.answer or {}).get("outcomes") or "no answer yet"
            scene.fault(f"the reply to {hit[0]} is lost", self.proxy.swallowed_at)
            scene.prove(f"reply to {hit[0]} lost {when} of a posting; the client: {told}; left: {left}")
        self.known = len(self.proxy.swallowed)


class LostReplyRetried(LostReply):
    slug = "lost-reply-retried"
    client = "as-it-comes"
