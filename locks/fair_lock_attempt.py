"""One attempt to get a fair lock: ask, wait in the queue to be woken, and look after one's place there."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from redis.exceptions import ConnectionError, RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from locks.wire import Call, Wire, packed

WAIT, TRY = packed(b"wait"), packed(b"try")
PAUSE = 0.05  # seconds between two tries to reach a server that went away
LATE = 0.002  # seconds after the holder's lease: the server counts in whole milliseconds
GRACE = 0.5  # seconds for a reply at the deadline, so that a busy server is not called unreachable


class Calls(NamedTuple):
    """The scripts of one lock, bound to its keys."""

    acquire: Call
    leave: Call
    release: Call
    extend: Call


class Attempt:
    """Times are seconds on `time.monotonic()`'s clock. Used once."""

    __slots__ = ("_asked_with", "_calls", "_deadline", "_heard", "_lease", "_wire", "since", "token")

    def __init__(self, wire: Wire, calls: Calls, lease: int, deadline: float | None) -> None:
        """`lease`: milliseconds. `deadline`: None waits as long as it takes."""
        self._wire, self._calls, self._lease, self._deadline = wire, calls, lease / 1000, deadline
        self.token = wire.new_token(lease)
        self._asked_with = packed(self.token, b"%d" % lease)
        self._heard: float | None = None  # when the server last answered
        self.since = 0.0  # when the lease began, or a moment before

    def run(self, *, waits: bool) -> int:
        """Return the fencing number, or 0 when the deadline came first. Raises redis-py's errors."""
        acquire = self._calls.acquire
        reply = self._ask(acquire, WAIT if waits else TRY)
        while type(reply) is not int:
            number = self._wait(*reply) if waits else 0
            if number is not None:
                return number
            reply = self._ask(acquire, WAIT)  # the same token again: "I am still here"
        return reply

    def _wait(self, server_now: int, lease_left: int) -> int | None:
        """Wait for the hand-over. Return the number, 0 at the deadline, None when it is time to ask again:

        after a third of the own lease, as the queue keeps the place of one who is heard of within a lease;
        and when the holder's lease is over: if it ended without a release, it is the waiters who notice.
        """
        asked = self.since
        seconds = self._lease / 3
        if lease_left >= 0:
            seconds = min(seconds, lease_left / 1000 + LATE)
        left = seconds if self._deadline is None else self._deadline - time.monotonic()
        try:
            wake = self._wire.await_wake(self.token, min(seconds, left))
        except ConnectionError:
            return None
        if wake is None:
            leaves = self._deadline is not None and left <= seconds
            return self._ask(self._calls.leave) if leaves else None
        # The lease began when the last holder gave the lock away. Both server times come from one clock, so
        # their difference tells how long ago that was, also after a pause of this process.
        now = time.monotonic()
        self.since = min(now, asked + (wake.at - server_now) / 1000)
        return wake.number if now - self.since < self._lease / 2 else None

    def _ask(self, call: Call, mode: bytes = b"") -> Any:
        """Ask, and again when the answer was lost: every question may be repeated with the same token.

        Once more at once; then, for one that was in the queue, until a lease has passed without an answer.
        """
        failures = 0
        while True:
            self.since = now = time.monotonic()
            left = None if self._deadline is None else max(self._deadline - now, GRACE)
            try:
                reply = self._wire.ask(call, self._asked_with + mode, left)
            except (ConnectionError, RedisTimeoutError):
                self._wire.disconnect()
                failures += 1
                if not self._tries_again(failures):
                    raise
            else:
                self._heard = now
                return reply

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

    def withdraw(self) -> bool:
        """After an interruption: leave the queue, give back what was granted. False: it could not be said.

        The wire is closed first, so that nothing can be handed to this attempt any more.
        """
        self._wire.disconnect()
        try:
            if self._wire.ask(self._calls.leave, self._asked_with, GRACE):
                self._wire.ask(self._calls.release, packed(self.token), GRACE)
        except RedisError:
            self._wire.disconnect()
            return False
        return True
