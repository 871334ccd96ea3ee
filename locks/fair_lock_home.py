"""Where one fair lock lives: the server that has its key, the questions to it, and what was left behind there."""

from __future__ import annotations

from typing import Any

from redis import Redis
from redis.cluster import RedisCluster
from redis.exceptions import ConnectionError, MovedError, RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from locks.errors import LockError, LockUnsupported
from locks.fair_lock_attempt import Calls, withdraw
from locks.fair_lock_client import client_for
from locks.server import typed_errors
from locks.wire import Call, Wire


class Home:
    """Of one lock object. Raises the errors of locks.errors."""

    def __init__(self, redis: Redis | RedisCluster, name: str, calls: Calls) -> None:
        self._redis, self._name, self._calls = redis, name, calls
        self.client = client_for(redis, name)
        self.abandoned: list[bytes] = []  # packed tokens of which nobody knows what became of them

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
