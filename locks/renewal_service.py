"""renewal-service: holders enter their locks in a register, and a separate service renews them all.

    A: SET lock a7f3 NX PX 30000 → OK, HSET register lock 30000, read 100
    A: (killed)
    service: HGETALL register → lock 30000, PEXPIRE lock 30000       … every 10 s, for ever
    B:                                  SET lock … → nil, … for ever

    acquire is two commands, and between them nobody renews:
    A: SET lock a7f3 NX PX 30000 → OK, (paused for 30 s)
    B:                                  SET lock 91c2 NX PX 30000 → OK, HSET register lock 30000, read 100
    A: HSET register lock 30000, read 100                      both are inside

    release is two commands, and between them another client may take the lock:
    A: compare-and-delete lock → 1
    B:                                  SET lock 91c2 NX PX 30000 → OK, HSET register lock 30000
    A: HDEL register lock               nobody renews B's lock: its section outlasts the lease, C is inside too

Guarantees   mutual exclusion while the service runs and the server forgets nothing. A holder keeps the lock through an
             overrun, and through a pause in its section.
Breaks when  the holder dies: the service does not know, and the lock lives for ever. That is the price of a renewal
             that is separate from the holder: the lease no longer shows that the holder is alive. A holder that is
             paused before it registers loses the lock. A release that is slow between its two commands takes its
             successor out of the register. The server loses the key, or its clock jumps.
Costs        2 round trips to acquire, 2 to release, 1 every `look` for each registered lock.
Source       the lock-series article (D1) names the idea and rejects it, without code: this code is ours.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
import weakref
from typing import ClassVar

from redis import Redis
from redis.exceptions import RedisError

from locks.base import AS_PUBLISHED, NO_FENCING, Lock
from locks.hazards import BESIDE_THE_LOCK, Hazard
from locks.server import LuaScript
from locks.timing import milliseconds, poll_until

REGISTER = "renewal-service:locks"


class RenewalServiceLock(Lock):
    """A token lock whose lease is renewed by a service that does not know whether the holder is alive.

    In production the service is a separate deployment. Here every process that uses such a lock runs an instance: a
    thread for each client. Each instance renews whatever *any* process has registered. So, as in production, the
    death of a holder does not stop the renewal while another process runs.
    """

    slug = "renewal-service"
    title = "Lease renewed by a service of its own"
    source = "D1: a renewal service, rejected there without code; this code is ours"
    guarantees = (
        "mutual exclusion while the service runs and the server forgets nothing, even if the holder is paused in"
        " its section"
    )
    breaks_when = (
        "the holder dies: its lock lives for ever; it is paused before it registers; the server loses the key"
    )
    round_trips = "2 + 2, and 1 every look"
    lease_step = 0.001
    renews = True
    withstands = BESIDE_THE_LOCK | {
        Hazard.CONTENTION,
        Hazard.OVERRUN,
        Hazard.FOREIGN_RELEASE,
        Hazard.WAITER_INTERRUPTED,
        Hazard.STAMPEDE,
    }
    fails: ClassVar[dict[str, str]] = {
        "lease-expiry": "the service renews a stopped holder's lock",
        "holder-crash": "the service renews a dead holder's lock",
        "lost-reply": "the service renews what a lost reply left behind",
        "renewal-of-anothers": "its purpose is to renew anyone's lock",
        "acquire-repeated": "SET NX refuses the key that the caller itself set: it waits until its own lease ends",
        "server-restart": "nothing tells the holder",
        "failover": "the replica has not got the key",
        "fairness": "polling",
    }
    not_applicable: ClassVar[dict[str, str]] = AS_PUBLISHED | NO_FENCING

    release_script = LuaScript("token_release.lua")
    #: the client of each instance of the service in this process → what tells it from a later one
    _services: ClassVar[weakref.WeakKeyDictionary[Redis, object]] = weakref.WeakKeyDictionary()

    def __init__(
        self, name: str, *, redis: Redis, lease: float = 30.0, poll: float = 0.1, look: float = 10.0
    ) -> None:
        """Seconds: `lease` of the key, `poll` between two attempts, `look` between two of the service's rounds."""
        super().__init__(name)
        self.redis, self.lease, self.poll = redis, milliseconds(lease), poll
        if redis not in self._services:
            self._services[redis] = me = object()
            threading.Thread(target=_serve, args=(weakref.ref(redis), look, me), daemon=True).start()

    def acquire(self, timeout: float | None = None) -> bool:
        token = secrets.token_hex(16).encode()
        if not poll_until(lambda: self._attempt(token), self.poll, timeout):
            return False
        self.redis.hset(REGISTER, self.name, self.lease)
        self.token = token
        return True

    def _attempt(self, token: bytes) -> bool:
        return bool(self.redis.set(self.name, token, nx=True, px=self.lease))

    def release(self) -> None:
        token, self.token = self.token, None
        if token is not None and self.release_script(self.redis, [self.name], [token]):
            self.redis.hdel(REGISTER, self.name)  # by now this may be the successor's entry

    @property
    def held(self) -> bool:
        return self.token is not None

    @classmethod
    def end_services(cls) -> None:
        """The instances in this process renew nothing from now on. The next lock begins a new one."""
        cls._services.clear()


def _serve(client: weakref.ref[Redis], look: float, me: object) -> None:
    """Renew every registered lock, no matter which process took it, until this instance is ended or its client is
    gone."""
    while True:
        time.sleep(look)
        redis = client()
        if redis is None or RenewalServiceLock._services.get(redis) is not me:
            return
        with contextlib.suppress(RedisError):
            for name, lease in redis.hgetall(REGISTER).items():
                redis.pexpire(name, int(lease))
        del redis
