"""What a lock can take as keywords: the clients of this process, each created once."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.conf import settings
from django.core.cache import caches
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from ledger.addresses import required
from ledger.models import Book


@cache
def redis_client(url: str = "") -> Redis:
    """Return this process's client. It never re-sends a command: an INCR whose reply was lost would count twice."""
    return Redis.from_url(url or required("REDIS_URL"), retry=Retry(NoBackoff(), 0))


def resources(book: Book) -> dict[str, Any]:
    """Return the clients that a lock's signature may name: `redis`, `redis_nodes`, `cache`, `sql`, `zookeeper`."""
    return {
        "redis": redis_client(),
        "redis_nodes": [redis_client(url) for url in settings.REDIS_NODES] or [redis_client()],
        "cache": caches["default"],
        "sql": "mariadb" if book.store == "mariadb" else "default",
        "zookeeper": settings.ZOOKEEPER_HOSTS,
    }
