"""Each worker stands for a process, so each has Redis clients and caches of its own, and nothing that a lock keeps."""

from __future__ import annotations

from typing import Any

from django_redis.pool import ConnectionFactory

from ledger import resources
from ledger.strategies.own_row import OwnRows
from locks.fair_lock import client
from locks.renewal_service import RenewalServiceLock
from lost_update_lab.gates import clocks
from lost_update_lab.gates.patch import Patches
from lost_update_lab.runs.place import anywhere

#: modules of the ledger that record times of reads and writes, but base no decision on them
DIARIES = ("ledger.stores.", "ledger.posting", "ledger.strategies.redis_atomic")


class OwnClients:
    """Replaces the client per process by a client per worker. `begin`, `leave`: of under_test/operations.py."""

    def __init__(self) -> None:
        self._shared: Any = resources.redis_client
        self._made: dict[tuple[int, str], Any] = {}
        self._pools: dict[tuple[int, str], Any] = {}

    def redis_client(self, url: str = "") -> Any:
        place = anywhere()
        if place is None:
            return self._shared(url)
        key = place.task.worker.index, url
        if key not in self._made:
            self._made[key] = self._shared.__wrapped__(url)
        return self._made[key]

    def pool(self, factory: Any, params: dict[str, Any]) -> Any:
        """django-redis keeps one pool for all caches of a process."""
        place = anywhere()
        key = place.task.worker.index if place else -1, params["url"]
        if key not in self._pools:
            self._pools[key] = factory.get_connection_pool(params)
        return self._pools[key]

    def begin(self) -> None:
        """Each run's workers are new processes."""
        RenewalServiceLock.end_services()
        client.start_again()
        OwnRows.forget()

    def begin_worker(self, index: int) -> None: ...

    def settle(self, index: int) -> None: ...

    def leave(self, index: int) -> None:
        for (owner, _), made in self._made.items():
            if owner == index:
                made.close()
        for (owner, _), pool in self._pools.items():
            if owner == index:
                pool.disconnect()

    def install(self, patches: Patches) -> None:
        patches.method(clocks, "DIARIES", (*clocks.DIARIES, *DIARIES))
        patches.everywhere(resources.redis_client, self.redis_client)

        def get_or_create_connection_pool(factory: Any, params: dict[str, Any]) -> Any:
            return self.pool(factory, params)

        patches.method(ConnectionFactory, "get_or_create_connection_pool", get_or_create_connection_pool)
