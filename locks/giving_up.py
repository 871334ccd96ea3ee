"""What counts as giving up: an error that says "not granted", and nothing else.

    LockTimeout, TimeoutError                     ours, and Python's own
    redis.exceptions.LockError, …                 the lock errors of the known libraries, by their names
    PostgreSQL's 55P03, lock_not_available        NOWAIT, and lock_timeout
    lock.gives_up = (MyError,)                    whatever a lock says of itself

A caller knows what to do with such an answer. Any other error is a mistake, in the lock or in the caller.
"""

from __future__ import annotations

from typing import Any

from locks.errors import LockError

#: package → the names of its errors that say "not granted"; none of them need be installed
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
    """Does `error` say that the lock was not granted? `lock`: the callable, which may name errors of its own."""
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
