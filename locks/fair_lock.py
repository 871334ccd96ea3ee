"""fair-lock: a token, a renewed lease, a fencing number, and a queue in which the release wakes the next.

    A: acquire → 41 (the number; queue empty)      A's renewal extends the lease each third of it
    B:                    acquire → queued, hears its channel
    C:                                  acquire → queued
    A: read, write, release: one script checks the owner, takes B from the queue, makes B the holder,
       number 42, and wakes B alone
    B:                    read, write, release → C, 43
       If B was killed meanwhile, PUBLISH reaches nobody: the same script goes on to C.

Guarantees   mutual exclusion while the holder's process runs and the server forgets nothing; first come,
             first served, without barging; a number that grows with every grant, also after the server lost
             its data. A holder that lost the lock hears of it: `.held`, the callback, LockLost at the next
             use. Renewal stops with the release and after `cap` seconds. Every command may be repeated after
             a lost reply. One object serves many threads; each thread is a holder of its own.
Bounds       a holder that crashed: one lease. A waiter that crashed: nothing. A waiter that is silent behind
             an open connection (paused, cut off): however many went silent together, two leases. A waiter
             that lost its connection, or a server that lost its queue: the waiter asks again at once, at the
             end of the queue, and gives up (LockUnavailable) when the server is away longer than a lease.
             Any other loss of a message: a third of the lease.
Breaks when  the holder is paused past its lease and nobody checks the number (see `fenced`); a failover or
             restart loses the key; the server's clock jumps; the key is evicted.
Costs        1 round trip to acquire, 1 to release, 2 commands a section also when contended; while it waits
             or holds, one more each third of the lease. One connection for each thread that waits.
Source       token and lease: the Redis manual. Number: M. Kleppmann, "How to do distributed locking".
             Hand-over by the releaser: ticket and queue locks (Mellor-Crummey and Scott, 1991).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from threading import Thread, current_thread
from typing import ClassVar

from redis import Redis
from redis.cluster import RedisCluster
from redis.exceptions import ConnectionError, MovedError, RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from locks.base import Lock, checked_name
from locks.errors import LockError, LockLost, LockNotHeld
from locks.fair_lock_attempt import Attempt, calls
from locks.fair_lock_grant import Grant, Terms
from locks.fair_lock_home import Home
from locks.hazards import BESIDE_THE_LOCK, Hazard
from locks.timing import milliseconds
from locks.wire import Wire


class FairLock(Lock):
    """The flagship: the queue of the field's fair locks, at the price of a plain token lock."""

    slug = "fair-lock"
    title = "Fair queue with hand-over, renewed lease and fencing number"
    source = "this lab; token and lease: Redis manual; fencing number: M. Kleppmann"
    guarantees = (
        "mutual exclusion while the holder's process runs; first come, first served; a loss is reported; "
        "a number that grows with every grant"
    )
    breaks_when = "the holder is paused past its lease and nobody checks the number; the server loses the key"
    round_trips = "1 + 1, and 1 each third of the lease"
    lease_step = 0.001
    renews = True
    withstands = BESIDE_THE_LOCK | {
        Hazard.CONTENTION,
        Hazard.CRASH,
        Hazard.OVERRUN,
        Hazard.RENEWAL_LIVES,
        Hazard.FOREIGN_RELEASE,
        Hazard.WAITER_INTERRUPTED,
        Hazard.LOST_REPLY,
        Hazard.STAMPEDE,
        Hazard.CONNECTIONS,
    }
    fails: ClassVar[dict[str, str]] = {
        "server-restart": "the server cannot tell the holder before its next renewal",
        "failover": "the replica has not got the key",
    }

    def __init__(
        self,
        name: str,
        *,
        redis: Redis | RedisCluster,
        lease: float = 10.0,
        reentrant: bool = False,
        renew: bool = True,
        cap: float = 600.0,
        on_lost: Callable[[FairLock], None] | None = None,
    ) -> None:
        """`lease` and `cap` in seconds: renewal, if wanted at all, ends `cap` after the acquire or extend.

        `reentrant`: a thread that holds the lock through this object enters again without asking the server.
        `on_lost`: called once for each loss, by the thread that noticed; often that is the renewal's.
        """
        self.name = checked_name(name)
        self.redis, self.reentrant = redis, reentrant
        self._milliseconds = milliseconds(lease)
        self._calls = calls(name, self._milliseconds)
        self._terms = Terms(self, self._calls, lease, cap if renew else 0.0, on_lost)
        self._grants: dict[Thread, Grant] = {}
        self._home = Home(redis, name, self._calls)
        self._generation = self._home.client.generation

    def acquire(self, timeout: float | None = None) -> bool:
        """Raises LockLost to a thread whose lock was lost and not yet released, LockError to one that holds
        it while `reentrant` is off."""
        if self._grants and (grant := self._own()) is not None:
            return self._enter_again(grant)
        try:
            try:
                return self._attempt(timeout)
            except MovedError:
                self._home.move()
                return self._attempt(timeout)
        except RedisError as error:
            raise self._home.typed(error) from error

    def _attempt(self, timeout: float | None) -> bool:
        home, client = self._home, self._home.client
        wire = client.borrow()
        word = wire.new_word(self._milliseconds)
        try:
            since, free = time.monotonic(), True  # the lease counts from before the question
            number = self._ask_simply(wire, word) if timeout is None and not home.abandoned else None
            if number is None or number < 0:
                home.settle(wire)
                attempt = Attempt(wire, self._calls, self._terms.lease, word, timeout)
                number = attempt.run(since, number)
                since, free = attempt.since, attempt.free
                if not number:
                    return False
            thread = current_thread()
            self._grants[thread] = grant = Grant(word, number, since, free, self._terms, thread)
            client.renewal.watch(grant)
            return True
        except BaseException as error:
            self._interrupted(wire, word, error)
            raise
        finally:
            client.give_back(wire)

    def _ask_simply(self, wire: Wire, word: bytes) -> int | None:
        try:
            reply: int = wire.ask(self._calls.acquire, word)
            return reply
        except (ConnectionError, RedisTimeoutError):
            return None  # perhaps only the reply was lost: the attempt asks again with the same token

    def _interrupted(self, wire: Wire, word: bytes, error: BaseException) -> None:
        grant = self._grants.pop(current_thread(), None)
        if grant is not None:
            self._home.client.renewal.forget(grant)
        wire.disconnect()  # nothing can be handed to this attempt any more
        self._home.abandoned.append(word)
        if not isinstance(error, RedisError):  # a cancelled wait: the server can be asked
            with suppress(RedisError):
                self._home.settle(wire)

    def _enter_again(self, grant: Grant) -> bool:
        if not grant.held:
            raise LockLost(f"{self.name}: lost inside; release it, re-read what was written, start again")
        if not self.reentrant:
            raise LockError(f"{self.name}: this thread holds it already; reentrant=True lets it enter again")
        grant.depth += 1
        return True

    def release(self) -> None:
        """Raises LockNotHeld without a holding, LockLost when the lock was lost before the release."""
        grant = self._mine("release")
        grant.depth -= 1
        if grant.depth:
            if not grant.held:
                raise self._lost("the release")
            return
        del self._grants[grant.thread]
        self._home.client.renewal.forget(grant)
        if grant.lost:
            raise self._lost("the release")
        in_time = grant.held
        try:
            released = self._home.give_back(grant.word, grant.number, free=grant.free, in_time=in_time)
        except BaseException:
            self._home.abandoned.append(grant.word)
            raise
        if not released:
            grant.lose()
            raise self._lost("the release")

    def extend(self) -> None:
        """Start the lease and the time to `cap` anew. Raises LockNotHeld, LockLost."""
        grant = self._mine("extend")
        asked = time.monotonic()
        if not grant.lost and self._home.ask(self._calls.extend, grant.word)[0]:
            grant.since = grant.acquired = asked
            return
        grant.lose()
        raise self._lost("the extension")

    def _own(self) -> Grant | None:
        """This thread's grant."""
        if self._generation != self._home.client.generation:  # a forked child holds nothing
            self._generation = self._home.client.generation
            self._grants.clear()
            self._home.abandoned.clear()
        return self._grants.get(current_thread())

    def _mine(self, verb: str) -> Grant:
        grant = self._own()
        if grant is None:
            raise LockNotHeld(f"{self.name}: {verb} by a thread that does not hold it")
        return grant

    def _lost(self, before: str) -> LockLost:
        return LockLost(f"{self.name}: lost before {before}; re-read what was written inside")

    @property
    def held(self) -> bool:
        """Of this thread; for a thread without a part in it, of any. By the clock and what renewal heard."""
        grant = self._own()
        return any(each.held for each in (list(self._grants.values()) if grant is None else [grant]))

    @property
    def token(self) -> bytes | None:  # type: ignore[override]  # of this thread, so nobody sets it
        grant = self._own()
        return None if grant is None else grant.token

    @property
    def fencing_token(self) -> int | None:  # type: ignore[override]
        grant = self._own()
        return None if grant is None else grant.number

    def __del__(self) -> None:
        for grant in getattr(self, "_grants", {}).values():  # nobody is left to release it: let it end
            self._home.client.renewal.forget(grant)
