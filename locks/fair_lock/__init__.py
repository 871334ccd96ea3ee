"""fair-lock: a token, a renewed lease, a fencing number, and a queue in which the release wakes the next waiter.

    A: acquire → 41 (the number; queue empty)      A's renewal extends the lease after every third of it
    B:                    acquire → queued, listens on its channel
    C:                                  acquire → queued
    A: read, write, release: one script checks the owner, takes B from the queue, makes B the holder,
       number 42, and wakes B alone
    B:                    read, write, release → C, 43
       If B was killed meanwhile, PUBLISH reaches nobody: the same script goes on to C.

Guarantees   Mutual exclusion while the holder's process runs, its renewal reaches the server, and the server forgets
             nothing. First come, first served, without barging. A number that grows with every grant, even after the
             server lost its data (but a failover to a lagging replica may give one number twice). A holder that lost
             the lock is told: by `.held`, by the callback, and by LockLost at the next use. Renewal stops with the
             release, with the holder's thread, and after `cap` seconds. Every command may be repeated after a lost
             reply. Each thread of a shared object is a separate holder. In a Cluster the lock follows its slot: after
             a primary has vanished, one use raises LockUnavailable, and the next asks the new primary.
Bounds       How long others are delayed. By a crashed holder: one lease. By a crashed waiter: not at all, because its
             connection is closed. By waiters that fell silent behind open connections (paused, cut off), however many:
             two leases in all, and the order of the rest may change once. A waiter that loses its connection asks
             again at once, and comes last. It gives up (LockUnavailable) when the server is away for longer than a
             lease. A message that is lost in any other way costs a third of the waiter's lease.
Breaks when  the holder is paused past its lease or cut off, or its section outlasts `cap`, and no store registers the
             number before the read and checks it at the write (see `fenced`). A failover or a restart loses the key.
             The server's clock jumps. The key is evicted.
Costs        1 round trip to acquire and 1 to release, also under contention: the hand-over alone wakes a waiter, at
             the price of a third command, CLIENT REPLY SKIP. A waiter or holder sends one more after every third of
             the lease, and a waiter one after its first 0.1 s in the queue. Each waiting thread has a connection. The
             first waiter costs the holder of that moment a second round trip. If a holder dies together with all its
             waiters, their queue remains until the name is used again: an expiry would cost each waiter one more
             command. Needs RESP3 and `SET … NX GET` (Redis 7, Valkey); uses DELIFEQ (Valkey 9) if the server has it.
Source       Token and lease: the Redis manual. Number: M. Kleppmann, "How to do distributed locking". Hand-over:
             Mellor-Crummey and Scott, 1991. What was tried: docs/decisions/0010-fair-lock.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar

from redis import Redis
from redis.cluster import RedisCluster
from redis.exceptions import RedisError

from locks.base import Lock
from locks.errors import LockError, LockLost, LockNotHeld
from locks.fair_lock.grant import Grant, Grants, Terms, here
from locks.fair_lock.home import Home
from locks.fair_lock.questions import Question
from locks.fair_lock.renewal import Renewal
from locks.hazards import OWNED_LEASE, Hazard
from locks.server import answering
from locks.timing import checked_cap


class FairLock(Lock):
    """The flagship: the queue of a fair lock, at the price of a plain token lock."""

    slug = "fair-lock"
    title = "Fair queue with hand-over, renewed lease and fencing number"
    source = "ours; Redis manual; M. Kleppmann"
    guarantees = (
        "mutual exclusion while the holder runs and its renewal reaches a server that forgets nothing;"
        " first come, first served; losses are reported; each grant has a larger number"
    )
    breaks_when = (
        "the holder is paused or cut off, or outlasts the cap, and no store checks the number;"
        " the server loses the key"
    )
    round_trips = "1 + 1, and 1 every third of the lease"
    lease_step = 0.001
    renews = True
    #: as `token`, except for the renewal: it survives an overrun, but not a renewal that died
    withstands = OWNED_LEASE | {Hazard.OVERRUN, Hazard.STAMPEDE, Hazard.CONNECTIONS}
    fails: ClassVar[dict[str, str]] = {
        "server-restart": "the holder learns of it only at its next renewal",
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
        """`lease` and `cap` in seconds. With `renew`, renewal ends `cap` seconds after the acquire or the last extend.

        `reentrant`: a thread that holds the lock through this object enters again without asking the server.
        `on_lost`: called once for each loss, in the thread that noticed it. The renewal starts a thread for the call.
        """
        super().__init__(name)
        self.redis, self.reentrant = answering(redis), reentrant
        self._home = Home(redis, self.name, lease)
        questions, cap = self._home.questions, checked_cap(cap) if renew else 0.0
        self._terms = Terms(self, questions, lease, cap, on_lost)
        self._grants = Grants(lease, self._home.client.generation)

    def acquire(self, timeout: float | None = None) -> bool:
        """Raises LockLost in a thread that lost the lock and has not released it yet. Raises LockError in a thread
        that holds it, unless `reentrant`."""
        if self._grants and (grant := self._own()) is not None:
            return self._enter_again(grant)
        try:
            return self._home.take(timeout, self._granted)
        except BaseException:
            self._grants.pop(here.thread, None)
            raise

    def _granted(self, word: bytes, number: int, since: float, gives_back: Question) -> None:
        grants, thread = self._grants, here.thread
        grants[thread] = Grant(word, number, since, self._terms, thread, gives_back)
        if not grants.watched:
            self._home.client.renewal.watch(grants)

    def _enter_again(self, grant: Grant) -> bool:
        if not grant.held:
            raise LockLost(f"{self.name}: lost inside; release it, re-read what was written, start again")
        if not self.reentrant:
            raise LockError(f"{self.name}: this thread already holds it; reentrant=True lets it enter again")
        grant.depth += 1
        return True

    def release(self) -> None:
        """Raises LockNotHeld if this thread holds nothing, LockLost if the lock was lost before the release."""
        grant = self._mine("release")
        grant.depth -= 1
        if not grant.depth:
            del self._grants[grant.thread]
            if grant.lost or not self._home.give_back(grant):
                grant.lose()
                raise self._lost("the release")
        elif not grant.held:
            raise self._lost("the release")

    def extend(self) -> None:
        """Restart the lease and the time to `cap`. Raises LockNotHeld, LockLost."""
        grant = self._mine("extend")
        asked = time.monotonic()
        if not grant.lost and self._home.ask(self._home.questions.extend, grant.word)[0]:
            grant.extended(asked)
            return
        grant.lose()
        raise self._lost("the extension")

    def renewal_after(self, error: RedisError) -> Renewal:
        """Return the renewal that must continue after a question to this lock's server failed with `error`."""
        self._home.seek(error)
        return self._home.client.renewal

    def _own(self) -> Grant | None:
        return self._grants.own(self._home.client.generation)

    def _mine(self, verb: str) -> Grant:
        grant = self._own()
        if grant is None:
            raise LockNotHeld(f"{self.name}: {verb} by a thread that does not hold it")
        return grant

    def _lost(self, before: str) -> LockLost:
        return LockLost(f"{self.name}: lost before {before}; re-read what was written inside")

    @property
    def held(self) -> bool:
        """Whether this thread holds it; in a thread that has no holding, whether any thread does. Judged by the clock
        and by what the renewal heard."""
        grant = self._own()
        return grant.held if grant else any(each.held for each in list(self._grants.values()))

    @property
    def token(self) -> bytes | None:  # type: ignore[override]  # this thread's, so it is read-only
        return grant.token if (grant := self._own()) else None

    @property
    def fencing_token(self) -> int | None:  # type: ignore[override]
        return grant.number if (grant := self._own()) else None

    def __del__(self) -> None:
        if "_grants" in self.__dict__:  # nobody can release it any more: let the lease end
            self._grants.clear()
