"""Every lock that the field's articles teach, the correct ones and the broken ones. One file for each lock.

A lock is any callable that takes a name and returns a context manager, of asyncio too. By keyword it asks for what it
needs (`redis`, `sql`, `zookeeper`) and for the settings that it understands (`lease`, `poll`, … in seconds).
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib.metadata import entry_points
from pkgutil import resolve_name
from typing import Any

from locks.base import Lock
from locks.errors import LockError, LockLost, LockNotHeld, LockTimeout, LockUnavailable, LockUnsupported
from locks.of_asyncio import clients, for_threads, is_of_asyncio

__all__ = [
    "LOCKS",
    "Lock",
    "LockError",
    "LockFactory",
    "LockLost",
    "LockNotHeld",
    "LockTimeout",
    "LockUnavailable",
    "LockUnsupported",
    "build",
    "find",
]

LockFactory = Callable[..., AbstractContextManager[Any]]

#: The only list: a lock is its own file, and one line here (docs/CONTRIBUTING.md).
LOCKS: dict[str, type[Lock]] = {
    lock.slug: lock
    for lock in map(
        resolve_name,
        (
            "locks.in_process:InProcessLock",
            "locks.file_lock:FileLock",
            "locks.naive_lock:NaiveLock",
            "locks.setnx:SetnxLock",
            "locks.setnx_ttl:SetnxTtlLock",
            "locks.hash_set:HashSetLock",
            "locks.timestamp:TimestampLock",
            "locks.counter:CounterLock",
            "locks.counter_one_name:CounterOneNameLock",
            "locks.watchdog:WatchdogLock",
            "locks.watchdog_lua:WatchdogLuaLock",
            "locks.watchdog_mended:WatchdogMendedLock",
            "locks.reentrant:ReentrantLock",
            "locks.reentrant_inverted:ReentrantInvertedLock",
            "locks.try_lock:TryLock",
            "locks.try_lock_checked:TryLockChecked",
            "locks.renewal_service:RenewalServiceLock",
            "locks.token_lock:TokenLock",
            "locks.token_leaky:TokenLeakyLock",
            "locks.compare_and_delete:CompareAndDeleteLock",
            "locks.redlock:RedlockLock",
            "locks.redlock_reentrant:RedlockReentrantLock",
            "locks.replicated_as_published:ReplicatedAsPublishedLock",
            "locks.replicated:ReplicatedLock",
            "locks.durable:DurableLock",
            "locks.semaphore:SemaphoreLock",
            "locks.read_write:ReadWriteLock",
            "locks.reentrant_mended:ReentrantMendedLock",
            "locks.token_pubsub:TokenPubSubLock",
            "locks.token_queue:TokenQueueLock",
            "locks.fenced:FencedLock",
            "locks.redis_py:RedisPyLock",
            "locks.django_redis_cache:DjangoRedisLock",
            "locks.python_redis_lock:PythonRedisLock",
            "locks.fair_lock:FairLock",
        ),
    )
}

ENTRY_POINTS = "lost_update_lab.locks"


def find(spec: str) -> LockFactory:
    """Return the lock called `spec`: a slug of LOCKS, an installed entry point, or `module:callable`.

    Raises LookupError, with the known names if there is no such lock, or with the reason if it cannot be loaded.
    """
    if spec in LOCKS:
        return LOCKS[spec]
    points = entry_points(group=ENTRY_POINTS, name=spec)
    if not points and ":" not in spec:
        raise LookupError(f"no lock {spec!r}. Known: {', '.join(sorted(LOCKS))}; or give module:callable")
    try:
        found: Any = next(iter(points)).load() if points else _loaded(*spec.split(":", 1))
    except (Exception, SystemExit) as error:  # a user's module may raise anything, or be a script
        raise LookupError(f"cannot load the lock {spec!r}: {type(error).__name__}: {error}") from error
    return _callable(found, spec)


def _loaded(module: str, path: str) -> Any:
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _callable(found: Any, spec: str) -> LockFactory:
    if not callable(found):
        kind = type(found).__name__
        raise LookupError(f"{spec!r} is of type {kind}, not a callable that takes a lock's name")
    return found  # type: ignore[no-any-return]


def build(factory: LockFactory, name: str, /, **offered: Any) -> AbstractContextManager[Any]:
    """Call `factory(name, …)` with those `offered` resources and settings that its signature names. A lock of asyncio
    gets clients of asyncio, and comes as its callers, who are threads, can enter it."""
    parameters = inspect.signature(factory).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        wanted = offered
    else:
        keywords = {p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}
        wanted = {key: value for key, value in offered.items() if key in keywords}
    if is_of_asyncio(factory):
        wanted = clients(wanted)
    return for_threads(factory(name, **wanted))  # type: ignore[no-any-return]
