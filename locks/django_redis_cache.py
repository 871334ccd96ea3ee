"""django-redis: `cache.lock(key, timeout=…)`, which is redis-py's lock under a key with the cache's prefix and version.

    A: SET :1:lock a7f3 NX PX 5000 → OK, read 100
    A: (paused past the lease)
    B:                                 SET :1:lock 91c2 NX PX 5000 → OK, read 100, write 120
    A: write 110                                                            B's 20 are gone

    and the cache is a cache:
    X: cache.clear()                   deletes every lock with everything else
    B:                                 SET :1:lock 91c2 NX PX 5000 → OK: A and B are inside

Guarantees   the same as `redis-py`.
Breaks when  `redis-py` breaks. The lock also lives in a cache: `cache.clear()` deletes it, and so does eviction under
             a memory limit. A change of KEY_PREFIX or VERSION during a rolling deploy splits it in two.
Costs        1 round trip to acquire (one more every 0.1 s while waiting), 1 to release, 1 to extend.
Source       django-redis, `cache.lock`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from redis import Redis

from locks.base import NO_FENCING, NO_RENEWER, Lock
from locks.redis_py import RedisPyLock, checked_lease
from locks.server import answering
from locks.timing import checked_poll


class LockingCache(Protocol):
    """What `cache` must offer. django-redis's RedisCache does."""

    def lock(self, key: str, *, timeout: float | None, sleep: float) -> Any: ...


class DjangoRedisLock(RedisPyLock):
    """An adapter for the lock of a django-redis cache. Its errors become those of locks.errors."""

    slug = "django-redis"
    title = "django-redis's cache.lock"
    source = "django-redis, cache.lock (F6)"
    breaks_when = "`redis-py` breaks; cache.clear() runs, the key is evicted, or the key prefix changes"
    fails: ClassVar[dict[str, str]] = RedisPyLock.fails
    not_applicable: ClassVar[dict[str, str]] = NO_RENEWER | NO_FENCING

    def __init__(
        self,
        name: str,
        *,
        cache: LockingCache | None = None,
        redis: Redis | None = None,
        lease: float | None = 5.0,
        poll: float = 0.1,
    ) -> None:
        """Give `cache`, a django-redis cache (`django.core.cache.cache`). Or give `redis`: then that client is used
        with the default cache's key function, and Django's settings must be configured. Seconds: `lease` (the
        library's `timeout`; its default None means no lease), `poll` (its `sleep`)."""
        Lock.__init__(self, name)
        lease, poll = checked_lease(lease), checked_poll(poll)
        if cache is not None:
            self._adapt(lambda: cache.lock(self.name, timeout=lease, sleep=poll))
        elif redis is not None:
            from django_redis.cache import RedisCache  # imported here because locks/ does not need Django

            unconnected: Any = RedisCache("redis://the-client-is-given", {})
            client = answering(redis)
            self._adapt(lambda: unconnected.lock(self.name, timeout=lease, sleep=poll, client=client))
        else:
            raise TypeError(f"{self.slug}: give cache= (a django-redis cache) or redis=")
