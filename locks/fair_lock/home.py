"""Where one fair lock lives: the server that has its key, the questions to it, and what was left behind there."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from redis import Redis
from redis.cluster import RedisCluster
from redis.exceptions import ConnectionError, MovedError, RedisClusterException, RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from locks.errors import LockError, LockUnavailable, LockUnsupported
from locks.fair_lock.attempt import FENCE_NUMBER, Attempt, Calls, withdraw
from locks.fair_lock.call import Call
from locks.fair_lock.client import client_for
from locks.fair_lock.grant import Grant
from locks.fair_lock.wire import Wire
from locks.server import typed_errors
from locks.timing import ends_at

#: is told the packed token, its number, since when (a moment before the lease began), and what gives it back
Granted = Callable[[bytes, int, float, Call], None]

#: wire, packed token, since when, what was read first
Begun = tuple[Wire, bytes, float, Any]


class Home:
    """Of one lock object. Raises the errors of locks.errors."""

    def __init__(self, redis: Redis | RedisCluster, name: str, calls: Calls, lease: float) -> None:
        self._redis, self._name, self._calls, self._lease = redis, name, calls, lease
        self.client = client_for(redis, name)
        self.abandoned: list[bytes] = []  # packed tokens of which nobody knows what became of them

    def take(self, timeout: float | None, granted: Granted, begun: Begun | None = None) -> bool:
        """Call `granted` when the lock is ours; False when the time was over first. Seconds.

        `begun`: the short way sent the first question, and this came of it.
        """
        deadline = ends_at(timeout)
        try:
            return self._take(timeout, granted, begun)
        except MovedError:
            self.move()
        except RedisError as error:
            raise self._failed(error) from error
        try:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            return self._take(left, granted, None)
        except RedisError as error:
            raise self._failed(error) from error

    def _take(self, timeout: float | None, granted: Granted, begun: Begun | None) -> bool:
        client, calls = self.client, self._calls
        if begun is None:
            wire = client.borrow()
            word, since, reply = wire.new_word(calls), time.monotonic(), None
        else:
            wire, word, since, reply = begun  # the lease counts from before the question
        try:
            number = None
            if timeout is None and not self.abandoned:
                number = self._first_answer(wire, word, reply)
            free = number is not None and number > 0
            if not free:
                self.settle(wire)
                attempt = Attempt(wire, calls, self._lease, word, timeout)
                number = attempt.run(since, number)
                since, free = attempt.since, attempt.free
            if number:
                granted(word, number, since, calls.delete if free and client.deletes else calls.release)
            wire.prepare(calls)
        except BaseException as error:
            self.give_up(wire, word, ask=not isinstance(error, RedisError))
            raise
        client.give_back(wire)
        return bool(number)

    def _first_answer(self, wire: Wire, word: bytes, reply: Any) -> int | None:
        try:
            call = self._calls.acquire
            number: int = wire.ask(call, word) if reply is None else wire.finish(call, word, reply)
            return number
        except (ConnectionError, RedisTimeoutError):
            return None  # perhaps only the reply was lost: the attempt asks again with the same token

    def give_up(self, wire: Wire, word: bytes, *, ask: bool) -> None:
        """An attempt failed or was cancelled. `ask`: the server can be asked to forget it. The wire is used by nobody
        any more: whoever listened on its channel again would be taken for this attempt, and the lock handed to it."""
        wire.disconnect()  # nothing can be handed to this attempt any more
        self.abandoned.append(word)
        if ask:
            with suppress(RedisError):
                self.settle(wire)
            wire.disconnect()

    def move(self) -> None:
        """The key's slot has another server now. Raises LockUnavailable when nobody says which."""
        try:
            self.client = client_for(self._redis, self._name, moved=True)
        except (RedisError, RedisClusterException) as error:
            raise LockUnavailable(f"{self._name}: the cluster cannot be asked ({error})") from error

    def seek(self, error: RedisError) -> None:
        """After this error the next question should go to whom the cluster says: a primary that is gone tells nobody
        that its slot has moved."""
        gone = isinstance(error, MovedError | ConnectionError | RedisTimeoutError)
        if gone and isinstance(self._redis, RedisCluster):
            with suppress(LockUnavailable):
                self.move()

    def ask(self, call: Call, word: bytes, begun: tuple[Wire, Any] | None = None) -> tuple[Any, bool]:
        """Return the reply, and whether the question was sent again because no answer came."""
        try:
            return self._ask(call, word, begun), False
        except MovedError:
            self.move()
            repeated = False
        except (ConnectionError, RedisTimeoutError):
            repeated = True
        except RedisError as error:
            raise self._failed(error) from error
        try:
            return self._ask(call, word), repeated
        except RedisError as error:
            raise self._failed(error) from error

    def _ask(self, call: Call, word: bytes, begun: tuple[Wire, Any] | None = None) -> Any:
        client = self.client
        wire = begun[0] if begun else client.borrow()
        try:
            return wire.finish(call, word, begun[1]) if begun else wire.ask(call, word)
        finally:
            client.give_back(wire)

    def give_back(self, grant: Grant, begun: tuple[Wire, Any] | None = None) -> bool:
        """Delete the lock if nobody ever waited for it, else hand it over. False: it was lost before.

        `begun`: the short way asked, and this came of it.
        """
        word, repeated, in_time = grant.word, False, grant.held
        try:
            if grant.deletes and (begun or self.client.deletes):  # what was begun is that
                try:
                    deleted, repeated = self.ask(self._calls.delete, word, begun)
                except LockUnsupported:
                    self.client.deletes = deleted = False
                if deleted:
                    return True
                begun = None
            reply, again = self.ask(self._calls.release, word, begun)
            self._calls.busy = reply == 2
            if reply > 0 or not in_time or not (repeated or again):
                return bool(reply > 0)
            # Not the owner: lost, unless an earlier sending was applied and only its reply was lost. A server that
            # lost the lock lost its counter too: it began anew, above this number, or a replica that lagged took
            # over, and knows no such number.
            last = self.ask(self._calls.last_number, FENCE_NUMBER)[0]
            return bool(0 < -reply <= grant.number <= int(last or 0))
        except BaseException:
            self.abandoned.append(word)
            raise

    def settle(self, wire: Wire) -> None:
        """What a lost reply or an interruption left behind at the server must not stand in the way."""
        while True:
            try:
                word = self.abandoned.pop()  # other threads settle too
            except IndexError:
                return
            try:
                withdraw(wire, self._calls, word)
            except BaseException:
                self.abandoned.append(word)
                raise

    def _failed(self, error: RedisError) -> Exception:
        """The error in our words."""
        self.seek(error)
        try:
            with typed_errors(self._name):
                raise error
        except (LockError, RedisError) as typed:
            return typed
