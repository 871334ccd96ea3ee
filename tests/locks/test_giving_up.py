"""What says "not granted", and what is a mistake."""

from __future__ import annotations

import portalocker
import psycopg
import pytest
import redis_lock
from django.db import OperationalError
from filelock import Timeout
from redis.exceptions import LockError as RedisLockError
from redis.exceptions import LockNotOwnedError

from locks import LockTimeout
from locks.giving_up import gives_up


class OwnError(Exception):
    pass


class OwnLock:
    gives_up = (OwnError,)


@pytest.mark.parametrize(
    "error",
    [
        LockTimeout("x"),
        TimeoutError("x"),
        RedisLockError("x"),
        LockNotOwnedError("x"),
        Timeout("x.lock"),
        portalocker.AlreadyLocked(),
        redis_lock.NotAcquired("x"),
        psycopg.errors.LockNotAvailable("x"),
    ],
)
def test_an_answer(error: Exception) -> None:
    assert gives_up(error)


def test_through_django() -> None:
    wrapped = OperationalError("x")
    wrapped.__cause__ = psycopg.errors.LockNotAvailable("x")
    assert gives_up(wrapped)
    assert not gives_up(OperationalError("x"))


@pytest.mark.parametrize("error", [KeyError("x"), RuntimeError("x"), OSError("x"), OwnError("x")])
def test_a_mistake(error: Exception) -> None:
    assert not gives_up(error)


@pytest.mark.parametrize("named", [(OwnError,), [OwnError], OwnError])
def test_what_a_lock_says_of_itself(named: object) -> None:
    OwnLock.gives_up = named  # type: ignore[assignment]
    assert gives_up(OwnError("x"), OwnLock)
    assert not gives_up(KeyError("x"), OwnLock)
