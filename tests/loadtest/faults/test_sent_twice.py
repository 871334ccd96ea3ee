"""A release whose reply is lost, and a client that sends it again: somebody else may be inside by then."""

from collections.abc import Callable
from contextlib import suppress
from inspect import signature
from typing import Self

import pytest
from redis import Redis
from redis.backoff import AbstractBackoff
from redis.retry import Retry

from loadtest.faults.proxy import Proxy
from loadtest.servers import Valkey
from locks import LOCKS
from locks.hazards import Hazard

#: the last command of their release asks nobody whose lock it is
BARE_DELETE = ("naive-lock", "setnx", "setnx-ttl", "hash-set", "timestamp", "counter", "watchdog", "try-lock")
CHECKED = (
    "watchdog-lua",
    "reentrant",
    "try-lock-checked",
    "token",
    "compare-and-delete",
    "semaphore",
    "reentrant-mended",
    "token-pubsub",
    "token-queue",
    "fenced",
    "redis-py",
    "python-redis-lock",
)


class Meanwhile(AbstractBackoff):
    """What comes between a command whose reply was lost and the same command again."""

    def __init__(self) -> None:
        self.comes: Callable[[], object] = lambda: None

    def compute(self, failures: int) -> float:
        self.comes()
        return 0

    def __deepcopy__(self, memo: object) -> Self:  # each connection has its own copy of its client's
        return self


@pytest.mark.parametrize("slug", [*BARE_DELETE, *CHECKED])
def test_a_release_that_is_sent_twice(slug: str, valkey_server: Callable[..., Valkey]) -> None:
    lock, server = LOCKS[slug], valkey_server(port=0)
    known = signature(lock).parameters
    patient = {name: 3600.0 for name in ("lease", "look") if name in known}  # no renewal comes between
    with Proxy(server.port) as proxy, Redis(port=server.port) as direct:
        meanwhile = Meanwhile()
        late = lock("name", redis=Redis(port=proxy.port, retry=Retry(meanwhile, 3)), **patient)
        successor, third = (lock("name", redis=direct, **patient) for _ in range(2))
        for first in (successor, late):
            assert first.acquire(timeout=0)
            if first is successor:
                first.release()  # the server knows its scripts now
        inside: list[bool] = []
        meanwhile.comes = lambda: inside.append(successor.acquire(timeout=0))
        proxy.swallow()
        with suppress(Exception):  # not held, or lost: what it says of that is no part of this
            late.release()
        assert inside == [True], "the release was carried out, and the successor is inside"
        freed = slug == "hash-set" or third.acquire(timeout=0)
    assert freed == (slug in BARE_DELETE)
    assert not freed or Hazard.LOST_REPLY not in lock.withstands, "it claims to withstand that"
