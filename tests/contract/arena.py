"""The servers of the contract."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from redis import Redis

from loadtest.servers import Valkey
from locks import LockFactory
from tests.contract.fight import Fight
from tests.contract.promises import wait_until
from tests.contract.site import Site
from tests.contract.workers import Workers

_numbers = itertools.count(1)


class Arena:
    """Each case has a new name. After a case, all its parties and processes are dead."""

    def __init__(self, servers: ExitStack) -> None:
        self.main = servers.enter_context(Valkey(persistence="always", port=0))
        self.replica = servers.enter_context(Valkey(config={"replicaof": f"127.0.0.1 {self.main.port}"}))
        no_lua = {f"rename-command {each}": "" for each in ("EVAL", "EVALSHA", "DELIFEQ")}
        self.old_server = servers.enter_context(Valkey(config=no_lua))
        self.cut_off = servers.enter_context(Valkey(config={"min-replicas-to-write": 1}))  # and it has none
        self.nodes = [servers.enter_context(Valkey()) for _ in range(2)]
        self.workers = servers.enter_context(Workers())
        self.site = Site(str(self.main.socket), tuple(str(node.socket) for node in self.nodes))
        self.admins = [each.client() for each in (self.main, *self.nodes)]
        self.outcomes: dict[
            Any, dict[Any, tuple[bool, bool]]
        ] = {}  # of disasters that strike all locks at once
        in_step(self.main)

    @contextmanager
    def fight(self, factory: LockFactory, **settings: Any) -> Iterator[Fight]:
        fight = Fight(self, factory, f"contract-{next(_numbers)}", settings)
        try:
            yield fight
        finally:
            fight.ends()

    def clients(self, name: str) -> list[dict[str, Any]]:
        """Return what the main server reports about the connections of the client with this name."""
        return [each for each in self.admins[0].client_list() if each["name"] == name]

    def keys(self, name: str) -> list[tuple[Redis, bytes]]:
        """Return the lock's own keys on all servers (not those of its queue, its counter, …)."""
        return [(admin, key) for admin in self.admins for key in admin.scan_iter(f"*{name}", count=1000)]


def renewers(target: str) -> set[threading.Thread]:
    """Return this process's threads that run the method `target` (Python names a thread after it). They may include
    those of earlier cases: a sleeping thread notices only when it wakes that its client is dead."""
    return {thread for thread in threading.enumerate() if f"({target})" in thread.name}


def in_step(primary: Valkey) -> None:
    """Return once a replica confirms new writes."""
    with primary.client() as admin:
        wait_until(lambda: admin.set("in-step", 1) and admin.wait(1, 100) == 1)
