"""Every lock that the field's articles teach, the right ones and the broken ones. One lock a file.

A lock is any callable that takes a name and returns a context manager; it asks by keyword for what it needs
(`redis`, `sql`, `zookeeper`) and for the settings it understands (`lease`, `poll`, … in seconds).
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib.metadata import entry_points
from typing import Any

from locks.base import Lock
from locks.compare_and_delete import CompareAndDeleteLock
from locks.counter import CounterLock
from locks.django_redis_cache import DjangoRedisLock
from locks.durable import DurableLock
from locks.errors import LockError, LockLost, LockNotHeld, LockTimeout, LockUnavailable, LockUnsupported
from locks.fair_lock import FairLock
from locks.fenced import FencedLock
from locks.file_lock import FileLock
from locks.hash_set import HashSetLock
from locks.in_process import InProcessLock
from locks.naive_lock import NaiveLock
from locks.python_redis_lock import PythonRedisLock
from locks.redis_py import RedisPyLock
from locks.redlock import RedlockLock
from locks.redlock_reentrant import RedlockReentrantLock
from locks.reentrant import ReentrantLock
from locks.reentrant_inverted import ReentrantInvertedLock
from locks.reentrant_mended import ReentrantMendedLock
from locks.renewal_service import RenewalServiceLock
from locks.replicated import ReplicatedLock
from locks.replicated_as_published import ReplicatedAsPublishedLock
from locks.semaphore import SemaphoreLock
from locks.setnx import SetnxLock
from locks.setnx_ttl import SetnxTtlLock
from locks.timestamp import TimestampLock
from locks.token_leaky import TokenLeakyLock
from locks.token_lock import TokenLock
from locks.token_pubsub import TokenPubSubLock
from locks.token_queue import TokenQueueLock
from locks.try_lock import TryLock
from locks.try_lock_checked import TryLockChecked
from locks.watchdog import WatchdogLock
from locks.watchdog_lua import WatchdogLuaLock

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

#: The only list. A lock is added here and in its own file, nowhere else.
LOCKS: dict[str, type[Lock]] = {
    lock.slug: lock
    for lock in (
        InProcessLock,
        FileLock,
        NaiveLock,
        SetnxLock,
        SetnxTtlLock,
        HashSetLock,
        TimestampLock,
        CounterLock,
        WatchdogLock,
        WatchdogLuaLock,
        ReentrantLock,
        ReentrantInvertedLock,
        TryLock,
        TryLockChecked,
        RenewalServiceLock,
        TokenLock,
        TokenLeakyLock,
        CompareAndDeleteLock,
        RedlockLock,
        RedlockReentrantLock,
        ReplicatedAsPublishedLock,
        ReplicatedLock,
        DurableLock,
        SemaphoreLock,
        ReentrantMendedLock,
        TokenPubSubLock,
        TokenQueueLock,
        FencedLock,
        RedisPyLock,
        DjangoRedisLock,
        PythonRedisLock,
        FairLock,
    )
}

ENTRY_POINTS = "lost_update_lab.locks"


def find(spec: str) -> LockFactory:
    """Return the lock called `spec`: a slug of LOCKS, an installed entry point, or `module:callable`.

    Raises LookupError: with the known names when there is none, with the reason when it cannot be loaded.
    """
    if spec in LOCKS:
        return LOCKS[spec]
    points = entry_points(group=ENTRY_POINTS, name=spec)
    if not points and ":" not in spec:
        raise LookupError(f"no lock {spec!r}. Known: {', '.join(sorted(LOCKS))}; or give module:callable")
    try:
        found: Any = next(iter(points)).load() if points else _loaded(*spec.split(":", 1))
    except (Exception, SystemExit) as error:  # a stranger's module may raise anything, or be a script
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
    """Call `factory(name, …)` with those of the `offered` resources and settings that its signature names."""
    parameters = inspect.signature(factory).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        wanted = offered
    else:
        keywords = {p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}
        wanted = {key: value for key, value in offered.items() if key in keywords}
    return factory(name, **wanted)
