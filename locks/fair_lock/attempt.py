"""An attempt that was not granted at once: it waits in the queue, and keeps its place there."""

from __future__ import annotations

import time

from redis.exceptions import ConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from locks.fair_lock.questions import Question, Questions, unpacked
from locks.fair_lock.wire import Wire
from locks.timing import A_DAY

PAUSE = 0.05  # seconds between two tries to reach a server that is away
LATE = 0.002  # seconds after the holder's lease, because the server counts whole milliseconds
GRACE = 0.5  # seconds for a reply at the deadline, so that a busy server does not count as unreachable


class Attempt:
    """One attempt, used once, by one thread. Times are seconds on `time.monotonic()`'s clock."""

    def __init__(
        self, wire: Wire, questions: Questions, word: bytes, lease: float, deadline: float | None
    ) -> None:
        """`word`: the packed token. `deadline`: None to wait as long as it takes."""
        self._wire, self._questions = wire, questions
        self._word, self._lease, self._deadline = word, lease, deadline
        self._heard: float | None = None  # when the server last answered
        self.since = 0.0  # when the lease began, or shortly before

    def try_once(self) -> int:
        """Like `run`, but without a place in the queue."""
        return max(0, self._ask(self._questions.try_once))

    def run(self, reply: int | None, asked: float) -> int:
        """Return the fencing number, or 0 if the wait time ended first. Raises redis-py's errors.

        `reply`: the first answer, to the question that was sent at `asked`.
        """
        if reply is None:
            reply = self._ask(self._questions.ask_again)
        else:
            self.since = self._heard = asked
        while reply < 0:
            number = self._wait(-reply / 1000)
            if number is not None:
                return number
            reply = self._ask(self._questions.ask_again)  # with the same token: "I am still here"
        return reply

    def _wait(self, lease_left: float) -> int | None:
        """Wait for the hand-over. Return the number, 0 at the deadline, or None when it is time to ask again.

        It is time after a third of the waiter's own lease, because the queue drops a waiter that is silent for a lease.
        It is time once a day. And it is time when the holder's lease is over: if the holder never released, only the
        waiters notice.
        """
        seconds = min(self._lease / 3, lease_left + LATE, A_DAY)
        left = seconds if self._deadline is None else self._deadline - time.monotonic()
        try:
            number = self._wire.await_number(unpacked(self._word), min(seconds, left))
        except ConnectionError:
            return None
        if number is None:
            leaves = self._deadline is not None and left <= seconds
            return self._ask(self._questions.leave) if leaves else None
        # The hand-over came after the last question, so the lease began after `since`. If `since` is long ago,
        # because this process was paused, the lease may be over: then the server has to be asked.
        return number if time.monotonic() - self.since < self._lease / 2 else None

    def _ask(self, question: Question) -> int:
        """Ask, and ask again if the answer was lost: every question may be repeated with the same token.

        The first repeat comes at once. A waiter that was in the queue goes on until a lease has passed without an
        answer.
        """
        failures = 0
        while True:
            self.since = now = time.monotonic()
            try:
                reply: int = self._wire.ask(question, self._word, self._left(now))
            except (ConnectionError, RedisTimeoutError):
                failures += 1
                if not self._tries_again(failures):
                    raise
                if question is self._questions.acquire:  # it may have been granted, or queued
                    question = self._questions.ask_again
            else:
                self._heard = now
                return reply

    def _left(self, now: float) -> float | None:
        return None if self._deadline is None else max(self._deadline - now, GRACE)

    def _tries_again(self, failures: int) -> bool:
        now = time.monotonic()
        if self._deadline is not None and now >= self._deadline:
            return False
        if failures == 1:
            return True
        if self._heard is None or now - self._heard > self._lease:
            return False
        time.sleep(PAUSE)
        return True


def withdraw(wire: Wire, questions: Questions, word: bytes) -> None:
    """Leave the queue, and give back a lock that was granted. Raises redis-py's errors."""
    if wire.ask(questions.leave, word, GRACE):
        wire.ask(questions.release, word, GRACE)
