"""Where the servers are, and locks built on clients of their own."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, replace
from typing import Any

from redis import ConnectionPool, Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from locks import LockFactory, build
from tests.contract.gates import Gate, GatedPort, GatedSocket

#: polls and looks scaled down; `build` takes what a lock understands. `confirm` must be less than a client's 5 s
SCALED: dict[str, Any] = {"poll": 0.02, "look": 0.03, "confirm": 4.0, "pool_wait": 0.2, "wait": 20.0}

#: seconds: a lease within which any machine does what has to come before its end; for whoever need not wait for it
UNHURRIED = 30.0

#: where somebody waits: a pool of which a lock that leaks uses up the last connection in any case
FEW = {"pool_size": 3}


@dataclass(frozen=True)
class Site:
    """Where the servers are: a socket's path, or a port. It can be sent to another process."""

    redis: str | int
    nodes: tuple[str | int, ...] = ()
    client_name: str | None = None
    retry: Retry = field(default_factory=lambda: Retry(NoBackoff(), 0))

    def named(self, client_name: str) -> Site:
        """The same, for clients that the server knows by this name."""
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
    """Seconds: short; whole where the lock knows whole ones only; longer where a thread must be in time for it, and
    where a replica or a disk must."""
    if "confirm" in inspect.signature(factory).parameters:
        return 4.0
    return 1.0 if getattr(factory, "lease_step", 0.001) == 1.0 or getattr(factory, "renews", False) else 0.4


def awaited(factory: Any) -> float:
    """Seconds: a lease that nobody renews any more and whose end somebody waits for. Where a thread renews what it
    should not, it must not miss it on a machine that stands still: the lock would end as if nobody had."""
    return 4.0 if getattr(factory, "renews", False) else 1.0


def built(factory: LockFactory, name: str, site: Site, gate: Gate, **settings: Any) -> Any:
    lease = settings.setdefault("lease", lease_of(factory))
    keywords = {**SCALED, "below": 0.9 * (lease or 1.0), **settings}
    return build(factory, name, **site.offers(gate), **keywords)
