"""Where a fair lock lives: the server that has its key, the questions to that server, and what was left behind there.

A question that will probably have to wait is asked quietly, without a reply. So the waiter wakes once, by the
message of the hand-over, and not a first time just to hear that it is queued. An error has no reply either: a waiter
that hears nothing for a moment asks again with the same token, and this time with a reply.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from redis import Redis
from redis.cluster import RedisCluster
from redis.exceptions import ConnectionError, MovedError, RedisClusterException, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from locks.errors import LockError, LockUnavailable, LockUnsupported
from locks.fair_lock.attempt import GRACE, Attempt, withdraw
from locks.fair_lock.client import client_for
from locks.fair_lock.grant import Grant
from locks.fair_lock.questions import FENCE_NUMBER, Question, unpacked
from locks.fair_lock.wire import Wire
from locks.server import typed_errors
from locks.timing import ends_at, milliseconds

QUIET = 0.1  # seconds to wait for a message after a quiet question, at most

#: called with the packed token, its number, the time shortly before the lease began, and the question that releases it
Granted = Callable[[bytes, int, float, Question], None]


class Home:
    """The home of one lock object. Raises the errors of locks.errors."""

    def __init__(self, redis: Redis | RedisCluster, name: str, lease: float) -> None:
        """`lease`: seconds."""
        self._redis, self._name, self._lease = redis, name, lease
        self.client = client_for(redis, name)
        self.questions = self.client.questions(name, milliseconds(lease))
        self.abandoned: list[bytes] = []  # packed tokens of attempts whose outcome is unknown

    def take(self, timeout: float | None, granted: Granted) -> bool:
        """Call `granted` once the lock is ours. False: the wait time ended first. `timeout` in seconds."""
        deadline, moved = ends_at(timeout), False
        while True:
            client, wire = self.client, self.client.borrow()
            word = wire.new_word(self.questions)
            try:
                if self.abandoned:
                    self.settle(wire)
                number = self._attempt(wire, word, timeout is not None and timeout <= 0, deadline, granted)
            except RedisError as error:
                self.give_up(wire, word, ask=False)
                if moved or not isinstance(error, MovedError):
                    raise self._failed(error) from error
                moved = True
                self.move()
            except BaseException:
                self.give_up(wire, word, ask=True)
                raise
            else:
                client.give_back(wire)
                return number > 0

    def _attempt(self, wire: Wire, word: bytes, once: bool, deadline: float | None, granted: Granted) -> int:
        """Return the number, or 0. `once`: without a place in the queue. Raises redis-py's errors."""
        client, questions = self.client, self.questions
        quiet = questions.busy and client.quiet
        since = time.monotonic()  # the lease counts from before the question
        number = None if once else self._first_answer(wire, word, deadline, quiet=quiet)
        free = not quiet  # it was free when we asked: then a plain command can release it
        if number is None or number < 0:
            attempt = Attempt(wire, questions, word, self._lease, deadline)
            number = attempt.try_once() if once else attempt.run(number, since)
            since, free = attempt.since, once
        if number:
            plain = free and client.deletes
            granted(word, number, since, questions.delete if plain else questions.release)
        return number

    def _first_answer(self, wire: Wire, word: bytes, deadline: float | None, *, quiet: bool) -> int | None:
        """Return the number, or below 0 the milliseconds that are left of the holder's lease. None: unknown, so ask
        again with the same token."""
        client, questions, asked = self.client, self.questions, time.monotonic()
        left = None if deadline is None else max(deadline - asked, GRACE)
        try:
            if not quiet:
                answer: int = wire.ask(questions.acquire, word, left)
                return answer
            seconds = min(QUIET, self._lease / 3, QUIET if deadline is None else deadline - asked)
            number = wire.tell(questions.acquire_quietly + word, unpacked(word), seconds, left)
            # A process that was paused reads an old message, whose lease may be over.
            return number if time.monotonic() - asked < self._lease / 2 else None
        except (ConnectionError, RedisTimeoutError):  # perhaps only the reply was lost
            if deadline is not None and time.monotonic() >= deadline:
                raise
        except ResponseError:
            if not quiet:
                raise
            client.quiet = False  # this user may not send CLIENT REPLY
        return None

    def give_up(self, wire: Wire, word: bytes, *, ask: bool) -> None:
        """An attempt failed or was cancelled. `ask`: ask the server to forget it. The wire is never used again: the
        server would take a new listener on its channel for this attempt, and hand the lock to it."""
        wire.disconnect()  # from now on nothing can be handed to this attempt
        self.abandoned.append(word)
        if ask:
            with suppress(RedisError):
                self.settle(wire)
            wire.disconnect()

    def move(self) -> None:
        """The key's slot has moved to another server. Raises LockUnavailable if no node knows which."""
        try:
            self.client = client_for(self._redis, self._name, moved=True)
        except (RedisError, RedisClusterException) as error:
            raise LockUnavailable(f"{self._name}: the cluster cannot be reached ({error})") from error

    def seek(self, error: RedisError) -> None:
        """After `error`, find out where the next question should go: a primary that is gone cannot say that its slot
        has moved."""
        gone = isinstance(error, MovedError | ConnectionError | RedisTimeoutError)
        if gone and isinstance(self._redis, RedisCluster):
            with suppress(LockUnavailable):
                self.move()

    def ask(self, question: Question, word: bytes) -> tuple[Any, bool]:
        """Return the reply, and whether the question was sent a second time because no answer came."""
        repeated = moved = False
        while True:
            client = self.client
            wire = client.borrow()
            try:
                return wire.ask(question, word), repeated
            except RedisError as error:
                if repeated or moved:
                    raise self._failed(error) from error
                if isinstance(error, MovedError):
                    moved = True
                    self.move()
                elif isinstance(error, ConnectionError | RedisTimeoutError):
                    repeated = True
                else:
                    raise self._failed(error) from error
            finally:
                client.give_back(wire)

    def give_back(self, grant: Grant) -> bool:
        """Delete the lock if nobody ever waited for it, else hand it over. False: it was already lost."""
        questions, word, in_time = self.questions, grant.word, grant.held
        repeated = False
        try:
            if grant.gives_back is questions.delete and self.client.deletes:
                try:
                    deleted, repeated = self.ask(questions.delete, word)
                except LockUnsupported:
                    self.client.deletes = deleted = False
                if deleted:
                    questions.busy = False
                    return True
            reply, again = self.ask(questions.release, word)
            questions.busy = reply == 2
            if reply > 0 or not in_time or not (repeated or again):
                return bool(reply > 0)
            # Not the owner: the lock is lost, unless the first sending was applied and only its reply was lost.
            # A server that lost the lock lost its counter too. Either the counter restarted above this number, or
            # a replica that lagged took over, and does not know this number.
            last = self.ask(questions.last_number, FENCE_NUMBER)[0]
            return bool(0 < -reply <= grant.number <= int(last or 0))
        except BaseException:
            self.abandoned.append(word)
            raise

    def settle(self, wire: Wire) -> None:
        """Remove what lost replies and interruptions left behind on the server, so that it blocks nobody."""
        while True:
            try:
                word = self.abandoned.pop()  # other threads settle too
            except IndexError:
                return
            try:
                withdraw(wire, self.questions, word)
            except BaseException:
                self.abandoned.append(word)
                raise

    def _failed(self, error: RedisError) -> Exception:
        """Return `error` as one of locks.errors."""
        self.seek(error)
        try:
            with typed_errors(self._name):
                raise error
        except (LockError, RedisError) as typed:
            return typed
