"""Where the servers are, and locks built on their own clients."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, replace
from typing import Any

from redis import ConnectionPool, Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from locks import LockFactory, build
from tests.contract.gates import Gate, GatedPort, GatedSocket

#: polls and looks, scaled down; `build` passes what a lock understands. `confirm` must be less than a client's 5 s
SCALED: dict[str, Any] = {"poll": 0.02, "look": 0.03, "confirm": 4.0, "pool_wait": 0.2, "wait": 20.0}

#: seconds: a lease long enough for any machine to do what must come before its end; for cases that do not await it
UNHURRIED = 30.0

#: for cases in which a client waits: a pool so small that a lock that leaks always uses up its last connection
FEW = {"pool_size": 2}
#: and one that does not run empty before the client is interrupted, however slow the machine
MANY = {"pool_size": 1000}


@dataclass(frozen=True)
class Site:
    """Where the servers are: a socket's path, or a port. Can be sent to another process."""

    redis: str | int
    nodes: tuple[str | int, ...] = ()
    client_name: str | None = None
    retry: Retry = field(default_factory=lambda: Retry(NoBackoff(), 0))

    def named(self, client_name: str) -> Site:
        """Return the same site, for clients that the server knows by this name."""
        return replace(self, client_name=client_name)

    def offers(self, gate: Gate) -> dict[str, Any]:
        clients = [self._client(address, gate) for address in (self.redis, *self.nodes)]
        return {"redis": clients[0], "redis_nodes": clients}

    def _client(self, address: str | int, gate: Gate) -> Redis:
        at = {"path": address} if isinstance(address, str) else {"host": "127.0.0.1", "port": address}
        pool = ConnectionPool(
            connection_class=GatedSocket if isinstance(address, str) else GatedPort,
            gate=gate,
            retry=self.retry,
            client_name=self.client_name,
            **at,
        )
        return Redis(connection_pool=pool)


def lease_of(factory: Any) -> float:
    """Return a lease in seconds. It is short, but whole if the lock only counts whole seconds, and longer if a renewal
    thread, a replica or a disk must be in time for it."""
    if "confirm" in inspect.signature(factory).parameters:
        return 4.0
    return 1.0 if getattr(factory, "lease_step", 0.001) == 1.0 or getattr(factory, "renews", False) else 0.4


def awaited(factory: Any) -> float:
    """Return, in seconds, a lease that should not be renewed, and whose end the case awaits. If a thread wrongly renews
    it, the thread must be in time even on a machine that stands still. Otherwise the lock would end as if it had not
    been renewed, and the case would miss the fault."""
    return 4.0 if getattr(factory, "renews", False) else 1.0


def built(factory: LockFactory, name: str, site: Site, gate: Gate, **settings: Any) -> Any:
    lease = settings.setdefault("lease", lease_of(factory))
    keywords = {**SCALED, "below": 0.9 * (lease or 1.0), **settings}
    return build(factory, name, **site.offers(gate), **keywords)
