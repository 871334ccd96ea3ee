"""What a strategy depends on: read from its class and its lock's signature, so that strangers' locks are told too."""

from __future__ import annotations

import inspect
import sys

from ledger.strategies import find

#: who asks Valkey only for those who take something: their cells withdraw, all others deposit
GATES = {"redis-gate"}
CLIENTS = {"redis", "redis_nodes", "cache"}


def factory_of(strategy: str) -> object | None:
    """Return what makes the locks of `strategy`; None if it takes none of `locks/`."""
    return getattr(find(strategy), "factory", None)


def asks_valkey(strategy: str) -> bool:
    """Does it ask a Valkey server, for its lock, its queue or its balance?"""
    found = find(strategy)
    if found.stores == ("redis",):
        return True
    if factory := factory_of(strategy):
        parameters = inspect.signature(factory).parameters  # type: ignore[arg-type]
        takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
        return takes_all or bool(CLIENTS & parameters.keys())
    return hasattr(sys.modules[found.__module__], "redis_client")


def store_of(strategy: str) -> str:
    """Return the store on which the matrix tries it."""
    stores = find(strategy).stores
    return "postgres" if "postgres" in stores else stores[0]


def lease_of(strategy: str) -> float:
    """Return the scaled lease in seconds: short, whole where the lock can only count in whole ones."""
    lock = factory_of(strategy)
    if (getattr(lock, "lease_step", None) or 0) >= 1:
        return 2.0
    return 1.0 if getattr(lock, "renews", False) else 0.5  # the watchdog looks every 0.3 s


def scaled(strategy: str, lease: float) -> dict[str, float]:
    """Return the lock's other times in seconds: in the same proportion to its lease as published. A wait for
    replicas is cut to 1 s."""
    factory = factory_of(strategy)
    if factory is None:
        return {}
    parameters = inspect.signature(factory).parameters  # type: ignore[arg-type]
    published = {name: each.default for name, each in parameters.items() if isinstance(each.default, float)}
    times: dict[str, float] = {}
    if "lease" in published:
        share = min(1.0, lease / published["lease"])
        times = {name: published[name] * share for name in ("look", "below") if name in published}
    if "confirm" in published:
        times["confirm"] = min(1.0, published["confirm"])
    return times


def no_valkey(strategy: str, store: str) -> str | None:
    return None if store == "redis" or asks_valkey(strategy) else "it asks no Valkey server"


def asks_a_majority(strategy: str) -> bool:
    """Does its lock ask several servers that know nothing of each other?"""
    asks = asked(strategy)
    return "redis_nodes" in asks and "redis" not in asks


def no_sentinel(strategy: str) -> str | None:
    if asks_a_majority(strategy):
        return "its nodes are independent of each other: none follows another"
    return (
        "Django's cache is configured with one address here: it follows no sentinel"
        if "cache" in asked(strategy)
        else None
    )


def no_postgres(store: str) -> str | None:
    return None if store == "postgres" else "its balances are not in PostgreSQL"


def no_zookeeper(strategy: str) -> str | None:
    return None if "zookeeper" in asked(strategy) else "it asks no ZooKeeper"


def asks_a_server(strategy: str) -> bool:
    """Does its lock lie on a server beside the balances?"""
    return asks_valkey(strategy) or "zookeeper" in asked(strategy)


def keeps_alive(strategy: str) -> bool:
    """Does something prolong its lock while the business runs: a renewal thread, a session's heartbeats?"""
    return bool(getattr(factory_of(strategy), "renews", False)) or "zookeeper" in asked(strategy)


def asked(strategy: str) -> set[str]:
    """Return what its lock asks for by keyword."""
    factory = factory_of(strategy)
    return set(inspect.signature(factory).parameters) if factory else set()  # type: ignore[arg-type]


def no_lock(strategy: str) -> str | None:
    return None if factory_of(strategy) else "it takes no lock that a client could release"


def no_renewal(strategy: str) -> str | None:
    if getattr(factory_of(strategy), "renews", False):
        return None
    return "no thread of its own renews a lease"
