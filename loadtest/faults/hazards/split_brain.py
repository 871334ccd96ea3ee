"""split-brain: the sentinels and the replica lose sight of the primary and promote another server; some clients still
reach the old primary, which still grants them locks.

    old primary   ← victim, and one more of its side          (everybody else is cut off: a TCP proxy)
    new primary   ← every client that asks the sentinels

Proof        both servers report `role:master` at the same time; the lock's keys on each.
Cannot touch a strategy that uses no Valkey; independent nodes; a client that was given one address.
Cleans up    all servers and the proxy belong to the party. The network is not mended: the old side's data is lost.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from redis.exceptions import RedisError

from loadtest.faults.hazards.adversary import PARTY_ENTERS, Party
from loadtest.faults.scene import sight
from loadtest.faults.scene.proxy import Proxy
from loadtest.servers import Sentinel, ServerError, Valkey
from loadtest.trials import dependencies
from locks.hazards import Hazard

if TYPE_CHECKING:
    from loadtest.faults.scene.scene import Scene
    from loadtest.faults.scene.site import Site

SENTINELS = 3


class SplitBrain(Party):
    slug = "split-brain"
    lasts = 10.0
    word = Hazard.SPLIT_BRAIN
    own_valkey = True
    lease = 10.0  # the promotion takes a while
    ahead = 2.5  # the rivals first ask the sentinels; on a busy machine 0.8 s was too short for that

    def not_applicable(self, strategy: str, store: str) -> str | None:
        return dependencies.no_sentinel(strategy) or super().not_applicable(strategy, store)

    @contextmanager
    def site(self, shared: Site) -> Iterator[Site]:
        with ExitStack() as stack:
            quick = {"repl-ping-replica-period": 1}
            self.old = stack.enter_context(Valkey(port=0, persistence="always", config=quick))
            self.front = stack.enter_context(Proxy(self.old.port))
            follows = quick | {"replicaof": ("127.0.0.1", self.front.port)}
            self.new = stack.enter_context(Valkey(port=0, persistence="always", config=follows))
            await_true(lambda: self.new.info("replication")["master_link_status"] == "up", 15)
            watched: Any = self.front  # the sentinels too see the primary only through the proxy
            self.sentinels = [
                stack.enter_context(Sentinel(watched, quorum=2, down_after_ms=300)) for _ in range(SENTINELS)
            ]
            await_true(lambda: all(_settled(each) for each in self.sentinels), 15)
            site = shared.with_valkey(self.old, self.old.tcp_url)
            site.sentinels = [("127.0.0.1", each.port or 0) for each in self.sentinels]
            yield site

    def event(self, site: Site) -> str:
        self.front.cut()
        await_true(lambda: self.new.info("replication")["role"] == "master", 20)
        await_true(lambda: all(int(each.sees()["port"]) == self.new.port for each in self.sentinels), 10)
        roles = [server.info("replication")["role"] for server in (self.old, self.new)]
        return (
            f"ports {self.old.port} and {self.new.port} are {' and '.join(roles)}"
            if set(roles) == {"master"}
            else ""
        )

    def strike(self, scene: Scene) -> None:
        direct = {"REDIS_URL": self.old.tcp_url}
        victim, beside = scene.hire(env=direct), scene.hire(env=direct)
        self.occasion.meet(self.front.cut)
        inside = scene.victim(PARTY_ENTERS, victim)
        refused = "" if inside else scene.turned_away(victim)
        if not inside and not refused:
            return
        before = scene.held(victim) if inside else refused
        seen = self.occasion.meet(lambda: self.event(scene.site))
        book = str(scene.book.pk)
        if scene.book.store == "redis":  # the old primary acknowledges it, and its data will be discarded
            scene.posts(beside)
            scene.wait([beside], 2)
        after = [sight.keys(scene.site.with_valkey(server), book) for server in (self.old, self.new)]
        if seen:
            scene.fault(f"two primaries: {seen}")
            scene.prove(
                f"{seen}; before: {before}; keys on the old one: {len(after[0])}, on the new one: {len(after[1])}"
            )
        scene.rivals = []  # new rivals ask the sentinels; the old rivals' connections hang until they time out
        scene.ahead(self.ahead)
        if inside:
            scene.go_on(victim)
        scene.wait([victim], 2)
        self.occasion.meet(lambda: scene.site.move_to(self.new))


def _settled(sentinel: Sentinel) -> bool:
    state = sentinel.sees()
    return int(state["num-slaves"]) == 1 and int(state["num-other-sentinels"]) == SENTINELS - 1


def await_true(condition: Any, seconds: float) -> None:
    """Wait until `condition` is true. Raises ServerError if it is not within `seconds`."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with suppress(RedisError):
            if condition():
                return
        time.sleep(0.02)
    raise ServerError("the servers of the split brain were not ready in time")
