"""One attempt to get a fair lock: ask, wait in the queue to be woken, and look after one's place there."""

from __future__ import annotations

import time
from functools import cached_property, lru_cache

from redis.exceptions import ConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from locks.fair_lock.call import Call, ScriptCall, packed, unpacked
from locks.fair_lock.wire import Wire
from locks.server import LuaScript
from locks.timing import A_DAY, ends_at

PAUSE = 0.05  # seconds between two tries to reach a server that went away
LATE = 0.002  # seconds after the holder's lease: the server counts in whole milliseconds
SILENT = (
    -100
)  # whoever heard nothing after a quiet question waits as many ms, then asks: an error is not told
GRACE = 0.5  # seconds for a reply at the deadline, so that a busy server is not called unreachable

UNANSWERED = b"*3\r\n" + packed(b"CLIENT", b"REPLY", b"SKIP")

FENCE_NUMBER = packed(b"number")

_QUEUE = "queue.lua"
ACQUIRE = LuaScript("take.lua", _QUEUE, "acquire.lua", package=__package__)
LEAVE = LuaScript(_QUEUE, "leave.lua", package=__package__)
RELEASE = LuaScript("hand.lua", _QUEUE, "release.lua", package=__package__)
EXTEND = LuaScript(_QUEUE, "extend.lua", package=__package__)


class Calls:
    """What is asked about one lock, bound to its keys and its lease (ms). The last word is the token."""

    def __init__(self, name: str, lease: int) -> None:
        parts = ("%s", "{%s}:fence", "{%s}:queue", "{%s}:heard")
        self._keys = [(part % name).encode() for part in parts]
        self._px = b"%d" % lease
        self.length = len(b"0123456789abcdef:0123456789abcde:") + len(self._px)
        #: a packed token, for `%` with the wire's channel and count: nobody guesses the channel
        self.word = b"$%d\r\n%%b:%%015d:%d\r\n" % (self.length, lease)
        self.acquire = ScriptCall(ACQUIRE, self._keys, b"first", self._px)
        self.delete = Call(b"DELIFEQ", self._keys[0])  # releases, if nobody waited: a '+' makes it unequal
        self.busy = False  # at the last release of this process somebody waited: probably it is held now

    @cached_property
    def quiet(self) -> ScriptCall:
        """As `acquire`, and answered by a message alone."""
        call = ScriptCall(ACQUIRE, self._keys, b"quiet", self._px)
        call.packed = UNANSWERED + call.packed
        return call

    @cached_property
    def ask_again(self) -> Call:
        return ScriptCall(ACQUIRE, self._keys, b"again", self._px)

    @cached_property
    def try_once(self) -> Call:
        return ScriptCall(ACQUIRE, self._keys, b"try", self._px)

    @cached_property
    def release(self) -> Call:
        return ScriptCall(RELEASE, self._keys)

    @cached_property
    def leave(self) -> Call:
        return ScriptCall(LEAVE, self._keys, self._px)

    @cached_property
    def last_number(self) -> Call:
        """Its last word is FENCE_NUMBER."""
        return Call(b"HGET", self._keys[1])

    @cached_property
    def extend(self) -> Call:
        return ScriptCall(EXTEND, self._keys, self._px)


#: a lock object is often made for a single section: what it sends need not be packed each time
calls = lru_cache(maxsize=1024)(Calls)


class Attempt:
    """Times are seconds on `time.monotonic()`'s clock. Used once, by one thread."""

    def __init__(self, wire: Wire, calls: Calls, lease: float, word: bytes, timeout: float | None) -> None:
        """`word`: the packed token. `timeout`: None waits as long as it takes."""
        self._wire, self._calls, self._lease, self._word = wire, calls, lease, word
        self._tries_once = timeout is not None and timeout <= 0
        self._deadline = ends_at(timeout)
        self._heard: float | None = None  # when the server last answered
        self.since = 0.0  # when the lease began, or a moment before
        self.free = True  # was it, when it was asked for? Else it was handed over

    def run(self, asked: float, reply: int | None = None) -> int:
        """Return the fencing number, or 0 when the time was over first. Raises redis-py's errors.

        `reply`: what came of a first question at the time `asked`, if there was one; SILENT: it was a quiet one,
        and nothing came yet.
        """
        if self._tries_once:
            return max(0, self._ask(self._calls.try_once))
        if reply is None:
            reply = self._ask(self._calls.ask_again)
        else:
            self.since = asked
            self._heard = None if reply == SILENT else asked
        while reply < 0:
            self.free = False
            number = self._wait(-reply / 1000)
            if number is not None:
                return number
            reply = self._ask(self._calls.ask_again)  # with the same token: "I am still here"
        return reply

    def _wait(self, lease_left: float) -> int | None:
        """Wait for the hand-over. Return the number, 0 at the deadline, None when it is time to ask again:

        after a third of the own lease, as the queue keeps the place of one who is heard of within a lease;
        once a day; and when the holder's lease is over: if it ended without a release, it is the waiters who notice.
        """
        seconds = min(self._lease / 3, lease_left + LATE, A_DAY)
        left = seconds if self._deadline is None else self._deadline - time.monotonic()
        try:
            wake = self._wire.await_wake(unpacked(self._word), min(seconds, left))
        except ConnectionError:
            return None
        if wake is None:
            leaves = self._deadline is not None and left <= seconds
            return self._ask(self._calls.leave) if leaves else None
        # The lock was handed over after it was last asked for, so the lease began after that: `since`. If that
        # is long ago, because this process was paused, it may be over: then the server has to be asked.
        return wake.number if time.monotonic() - self.since < self._lease / 2 else None

    def _ask(self, call: Call) -> int:
        """Ask, and again when the answer was lost: every question may be repeated with the same token.

        Once more at once; then, for one that was in the queue, until a lease has passed without an answer.
        """
        failures = 0
        while True:
            self.since = now = time.monotonic()
            left = None if self._deadline is None else max(self._deadline - now, GRACE)
            try:
                reply: int = self._wire.ask(call, self._word, left)
            except (ConnectionError, RedisTimeoutError):
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


def withdraw(wire: Wire, calls: Calls, word: bytes) -> None:
    """Leave the queue, and give back what was granted. Raises redis-py's errors."""
    if wire.ask(calls.leave, word, GRACE):
        wire.ask(calls.release, word, GRACE)
