"""Two deposits, each read, computed and written under the lock, which has an expiry of 30 s."""

from __future__ import annotations

from typing import Any

from museum.packages.bank import deposits
from museum.packages.package import Package


def lock(redis: Any) -> Any:
    import redis_lock

    return redis_lock.Lock(redis, "account", expire=30)


PACKAGE = Package(
    pins=["python-redis-lock==4.0.1"],
    trials=lambda: deposits(lock),
    others="the registry has no newer one; 3.7.0 and 3.0.0 have the same verdicts. "
    "It is the limit of every lease: the write is not fenced",
)
