"""Where one fair lock lives: the server that has its key, the questions to it, and what was left behind there."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from redis import Redis
from redis.cluster import RedisCluster
from redis.exceptions import ConnectionError, MovedError, RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from locks.call import Call
from locks.errors import LockError, LockUnsupported
from locks.fair_lock_attempt import Attempt, Calls, withdraw
from locks.fair_lock_client import client_for
from locks.server import typed_errors
from locks.wire import Wire

#: packed token, fencing number, since when (a moment before the lease began), was it free when asked for?
Taken = tuple[bytes, int, float, bool]


class Home:
    """Of one lock object. Raises the errors of locks.errors."""

    def __init__(self, redis: Redis | RedisCluster, name: str, calls: Calls) -> None:
        self._redis, self._name, self._calls = redis, name, calls
        self.client = client_for(redis, name)
        self.abandoned: list[bytes] = []  # packed tokens of which nobody knows what became of them

    def take(self, timeout: float | None, lease: float, granted: Callable[[Taken], None]) -> bool:
        """Call `granted` when the lock is ours; False when the time was over first. Seconds."""
        try:
            try:
                return self._take(timeout, lease, granted)
            except MovedError:
                self.move()
                return self._take(timeout, lease, granted)
        except RedisError as error:
            raise self.typed(error) from error

    def _take(self, timeout: float | None, lease: float, granted: Callable[[Taken], None]) -> bool:
        wire = self.client.borrow()
        word = wire.new_word(self._calls.lease)
        try:
            since, free = time.monotonic(), True  # the lease counts from before the question
            number = self._ask_simply(wire, word) if timeout is None and not self.abandoned else None
            if number is None or number < 0:
                self.settle(wire)
                attempt = Attempt(wire, self._calls, lease, word, timeout)
                number = attempt.run(since, number)
                since, free = attempt.since, attempt.free
            if number:
                granted((word, number, since, free))
            return number > 0
        except BaseException as error:
            wire.disconnect()  # nothing can be handed to this attempt any more
            self.abandoned.append(word)
            if not isinstance(error, RedisError):  # a cancelled wait: the server can be asked
                with suppress(RedisError):
                    self.settle(wire)
            raise
        finally:
            self.client.give_back(wire)

    def _ask_simply(self, wire: Wire, word: bytes) -> int | None:
        try:
            reply: int = wire.ask(self._calls.acquire, word)
            return reply
        except (ConnectionError, RedisTimeoutError):
            return None  # perhaps only the reply was lost: the attempt asks again with the same token

    def move(self) -> None:
        """The key's slot has another server now."""
        self.client = client_for(self._redis, self._name, moved=True)

    def ask(self, call: Call, word: bytes) -> tuple[Any, bool]:
        """Return the reply, and whether the question was sent again because no answer came."""
        try:
            try:
                return self.client.ask(call, word), False
            except MovedError:
                self.move()
                return self.client.ask(call, word), False
            except (ConnectionError, RedisTimeoutError):
                return self.client.ask(call, word), True
        except RedisError as error:
            raise self.typed(error) from error

    def give_back(self, word: bytes, number: int, *, free: bool, in_time: bool) -> bool:
        """Delete the lock if nobody ever waited for it, else hand it over. False: it was lost before.

        `free`: it was not handed over by another. `in_time`: by the clock, the lease was not over.
        """
        try:
            return self._give_back(word, number, free=free, in_time=in_time)
        except BaseException:
            self.abandoned.append(word)
            raise

    def _give_back(self, word: bytes, number: int, *, free: bool, in_time: bool) -> bool:
        repeated = False
        if free and self.client.deletes:
            try:
                deleted, repeated = self.ask(self._calls.delete, word)
            except LockUnsupported:
                self.client.deletes = deleted = False
            if deleted:
                return True
        reply, again = self.ask(self._calls.release, word)
        # Not the owner: lost, unless an earlier sending was applied and only its reply was lost. A server that
        # lost the lock lost its counter too: it began anew, above this number.
        return reply == 1 or ((repeated or again) and in_time and 0 < -reply <= number)

    def settle(self, wire: Wire) -> None:
        """What a lost reply or an interruption left behind at the server must not stand in the way."""
        while self.abandoned:
            withdraw(wire, self._calls, word := self.abandoned[-1])
            self.abandoned.remove(word)

    def typed(self, error: RedisError) -> Exception:
        try:
            with typed_errors(self._name):
                raise error
        except (LockError, RedisError) as typed:
            return typed
