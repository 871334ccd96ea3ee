"""lost-reply: a command of the lock is carried out, and its answer never arrives. Who has the lock now?

    lost-reply           the client re-sends nothing, as the lab's own clients
    lost-reply-retried   redis-py as it comes: it connects anew and sends the command a second time, also one that is
                         not idempotent

Proof        the command whose reply the proxy threw away, and the keys that the server has afterwards.
Cannot touch what asks no Valkey.
Cleans up    the proxy ends with the cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from loadtest.faults import touch
from loadtest.faults.base import Adversary
from loadtest.faults.proxy import Proxy
from locks.hazards import Hazard

if TYPE_CHECKING:
    from loadtest.faults.scene import Scene
    from loadtest.faults.site import Site


class LostReply(Adversary):
    slug = "lost-reply"
    word = Hazard.LOST_REPLY
    client: ClassVar[str] = ""

    def not_applicable(self, strategy: str, store: str) -> str | None:
        return touch.no_valkey(strategy, store)

    @contextmanager
    def site(self, shared: Site) -> Iterator[Site]:
        with Proxy(shared.valkey.port) as self.proxy:
            nodes = ",".join([self.proxy.url, *(node.url for node in shared.nodes[:2])])
            env = {"REDIS_URL": self.proxy.url, "REDIS_NODES": nodes, "LAB_CLIENT": self.client}
            yield replace(shared, env=env)

    def strike(self, scene: Scene) -> None:
        worker = scene.hire()
        scene.struck.add(worker)
        self.proxy.swallow()
        scene.posts(worker)
        scene.wait([worker], 2)
        if self.proxy.swallowed:
            left = "; ".join(scene.keys().values()) or "no key"
            scene.prove(f"reply to {self.proxy.swallowed[0]} lost; the client: {worker.answer}; left: {left}")
        scene.rush()


class LostReplyRetried(LostReply):
    slug = "lost-reply-retried"
    client = "as-it-comes"
