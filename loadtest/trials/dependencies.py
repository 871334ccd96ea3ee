"""What a strategy depends on, read from its class and its lock's signature, so that it works for a user's lock too."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping

from ledger.strategies import find

CLIENTS = {"redis", "redis_nodes", "cache"}


def factory_of(strategy: str) -> object | None:
    """Return what creates the locks of `strategy`, or None if it takes no such lock."""
    return getattr(find(strategy), "factory", None)


def parameters(strategy: str) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of what creates its lock: {keyword: how it is declared}."""
    factory = factory_of(strategy)
    return inspect.signature(factory).parameters if factory else {}  # type: ignore[arg-type]


def asks_valkey(strategy: str) -> bool:
    """Whether it uses a Valkey server, for its lock, its queue or its balance."""
    found = find(strategy)
    if found.stores == ("redis",):
        return True
    if factory_of(strategy):
        keywords = parameters(strategy)
        takes_all = any(each.kind is each.VAR_KEYWORD for each in keywords.values())
        return takes_all or bool(CLIENTS & keywords.keys())
    return hasattr(sys.modules[found.__module__], "redis_client")


def store_of(strategy: str) -> str:
    """Return the store on which the matrix tries it."""
    stores = find(strategy).stores
    return "postgres" if "postgres" in stores else stores[0]


def no_valkey(strategy: str, store: str) -> str | None:
    return None if store == "redis" or asks_valkey(strategy) else "it uses no Valkey server"


def asks_a_majority(strategy: str) -> bool:
    """Whether its lock asks several servers that are independent of each other."""
    asks = asked(strategy)
    return "redis_nodes" in asks and "redis" not in asks


def no_sentinel(strategy: str) -> str | None:
    if asks_a_majority(strategy):
        return "its nodes are independent of each other: none replicates another"
    return (
        "Django's cache is configured with one address here, so it follows no sentinel"
        if "cache" in asked(strategy)
        else None
    )


def no_postgres(store: str) -> str | None:
    return None if store == "postgres" else "its balances are not in PostgreSQL"


def no_zookeeper(strategy: str) -> str | None:
    return None if "zookeeper" in asked(strategy) else "it uses no ZooKeeper"


def asks_a_server(strategy: str) -> bool:
    """Whether its lock is on another server than the balances."""
    return asks_valkey(strategy) or "zookeeper" in asked(strategy)


def keeps_alive(strategy: str) -> bool:
    """Whether something extends its lock while the business runs: a renewal thread, or a session's heartbeats."""
    return bool(getattr(factory_of(strategy), "renews", False)) or "zookeeper" in asked(strategy)


def asked(strategy: str) -> set[str]:
    """Return the keywords by which its lock asks for what it needs."""
    return set(parameters(strategy))


def no_lock(strategy: str) -> str | None:
    return None if factory_of(strategy) else "it takes no lock that a client could release"


def no_renewal(strategy: str) -> str | None:
    if getattr(factory_of(strategy), "renews", False):
        return None
    return "it has no thread that renews a lease"
