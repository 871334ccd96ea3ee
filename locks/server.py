"""Asks the server: calls scripts by their hash, and turns the server's errors into those of locks.errors."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib.resources import files
from typing import Any, TypeVar

from redis import Redis, asyncio
from redis.backoff import NoBackoff
from redis.client import Pipeline
from redis.cluster import ClusterPipeline, RedisCluster
from redis.connection import AbstractConnection
from redis.exceptions import (
    AskError,
    ClusterDownError,
    ConnectionError,
    MasterDownError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry

from locks.errors import LockError, LockUnavailable, LockUnsupported

#: prefixes of errors without a class in redis-py: the server misses its replicas, cannot save, runs a long script
_REFUSALS = ("NOREPLICAS ", "MISCONF ", "BUSY ")
#: prefixes of errors when a script may not run one of its commands, or touch a key (the second: Redis 6)
_FORBIDDEN = ("ACL failure in script", "The user executing the script can't ")
_UNSUPPORTED = ("unknown command", "unknown subcommand", "syntax error", "appendonly is disabled")


class LuaScript:
    """A `.lua` file beside the lock (or in another `package`), preceded by the files on which it builds. Its header
    names KEYS, ARGV and the reply."""

    def __init__(self, *filenames: str, package: str = __package__) -> None:
        self.filenames, self.package = filenames, package

    @cached_property
    def text(self) -> str:
        folder = files(self.package)
        return "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in self.filenames)

    @cached_property
    def sha(self) -> str:
        return hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()

    def __call__(self, redis: Redis, keys: Sequence[str], args: Sequence[bytes | str | int] = ()) -> Any:
        """Make one round trip (EVALSHA). If the server forgot the script (restart, SCRIPT FLUSH, failover), it takes
        one more: EVAL sends the text, which loads the script again."""
        try:
            return redis.evalsha(self.sha, len(keys), *keys, *args)
        except NoScriptError:
            return redis.eval(self.text, len(keys), *keys, *args)


Client = TypeVar("Client")
_PROMISING = (asyncio.Redis, asyncio.RedisCluster, Pipeline, ClusterPipeline)


def answering(client: Client) -> Client:
    """Return `client`. Raises TypeError for an asyncio client and for a pipeline. What those return in place of an
    answer is truthy, so every acquire would be granted, and nothing sent."""
    if isinstance(client, _PROMISING):
        raise TypeError(f"{type(client).__qualname__} does not answer at once: give a redis.Redis")
    return client


@contextmanager
def one_session(redis: Redis) -> Iterator[Redis]:
    """A client on one connection that never reconnects. WAIT and WAITAOF confirm what their own session wrote.
    redis-py's usual client would reconnect after an error and repeat the question in a new session, which wrote
    nothing. Nothing is always confirmed."""
    with redis.client() as client:  # type: ignore[no-untyped-call]
        connection = client.connection
        usual, connection.retry = connection.retry, Retry(NoBackoff(), 0)
        try:
            yield client
        finally:
            connection.retry = usual


def command(redis: Redis, *words: bytes | str | int) -> Any:
    """Send a command that redis-py has no method for."""
    return redis.execute_command(*words)  # type: ignore[no-untyped-call]


@contextmanager
def typed_errors(name: str) -> Iterator[None]:
    """Turn redis-py's errors into LockUnavailable or LockUnsupported with the lock's name, or into LockError if the
    name is the key of another value.

    After LockUnavailable nobody knows whether the command was applied: perhaps only the reply was lost.
    """
    try:
        yield
    except (ConnectionError, RedisTimeoutError) as error:
        raise LockUnavailable(
            f"{name}: the server cannot be reached ({error}); a lease that it granted ends by itself"
        ) from error
    except ReadOnlyError as error:
        raise LockUnavailable(
            f"{name}: this server is a read-only replica; connect to the primary"
        ) from error
    except (ClusterDownError, MasterDownError, OutOfMemoryError) as error:
        raise LockUnavailable(f"{name}: the server refuses writes ({error})") from error
    except (AskError, TryAgainError) as error:  # also MOVED, for a caller that has already followed one
        raise LockUnavailable(f"{name}: its slot is being moved ({error})") from error
    except NoPermissionError as error:
        raise LockUnsupported(f"{name}: this user may not run the lock's commands ({error})") from error
    except ResponseError as error:
        if str(error).startswith(_FORBIDDEN):
            raise LockUnsupported(f"{name}: this user may not run the lock's commands ({error})") from error
        if str(error).startswith(_REFUSALS):
            raise LockUnavailable(f"{name}: the server refuses writes ({error})") from error
        if any(sign in str(error).lower() for sign in _UNSUPPORTED):
            raise LockUnsupported(
                f"{name}: the server lacks a command that this lock needs ({error})"
            ) from error
        if str(error).startswith("WRONGTYPE "):
            raise LockError(f"{name}: this key holds something else; give the lock another name") from error
        if "user_script" in str(error):  # a script found a value of another type
            raise LockError(
                f"{name}: one of its keys holds something else; give the lock another name ({error})"
            ) from error
        raise


#: seconds, for a client that was created without a setting (`Redis.from_url`)
_SOCKET_TIMEOUT = inspect.signature(AbstractConnection.__init__).parameters["socket_timeout"].default


def socket_timeout(redis: Redis | RedisCluster) -> float | None:
    """Return for how many seconds this client waits for a reply (None: for ever)."""
    told = redis.nodes_manager if isinstance(redis, RedisCluster) else redis.connection_pool
    limit: float | None = told.connection_kwargs.get("socket_timeout", _SOCKET_TIMEOUT)
    return limit


def longest_block(redis: Redis | RedisCluster) -> float:
    """Return for how many seconds a command may block before this client's socket time-out ends it."""
    limit = socket_timeout(redis)
    return 3600.0 if limit is None else limit / 2
