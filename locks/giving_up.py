"""What counts as giving up: an error that says "not granted", and nothing else.

    LockTimeout, TimeoutError                     ours, and Python's own
    redis.exceptions.LockError, …                 the lock errors of known libraries, by name
    PostgreSQL's 55P03, lock_not_available        NOWAIT, and lock_timeout
    lock.gives_up = (MyError,)                    errors that a lock names itself

A caller can handle such an answer. Any other error is a bug in the lock or in the caller.
"""

from __future__ import annotations

from typing import Any

from locks.errors import LockError

#: package → the names of its errors that mean "not granted". The packages need not be installed
KNOWN: dict[str, frozenset[str]] = {
    "redis": frozenset({"LockError"}),
    "valkey": frozenset({"LockError"}),
    "redis_lock": frozenset({"NotAcquired"}),
    "redlock": frozenset({"RedLockError", "MultipleRedlockException"}),
    "pottery": frozenset({"QuorumNotAchieved", "QuorumIsImpossible"}),
    "aioredlock": frozenset({"LockError"}),
    "portalocker": frozenset({"LockException", "AlreadyLocked"}),
    "sherlock": frozenset({"LockException", "LockTimeoutException"}),
    "kazoo": frozenset({"LockTimeout"}),
    "tooz": frozenset({"LockAcquireFailed"}),
    "etcd3": frozenset({"LockTimeout"}),
    "psycopg": frozenset({"LockNotAvailable"}),
    "psycopg2": frozenset({"LockNotAvailable"}),
}


def gives_up(error: BaseException, lock: Any = None) -> bool:
    """Whether `error` means that the lock was not granted. `lock`: the callable, which may name its own errors."""
    if isinstance(error, (LockError, TimeoutError, *_own(lock))):
        return True
    errors = (error, error.__cause__)  # Django wraps the database's errors
    return any(
        each.__name__ in KNOWN.get(each.__module__.partition(".")[0], ())
        for one in errors
        if one is not None
        for each in type(one).__mro__
    )


def _own(lock: Any) -> tuple[type[BaseException], ...]:
    named = getattr(lock, "gives_up", ())
    return tuple(named) if isinstance(named, (tuple, list, set, frozenset)) else (named,)
