"""counter: INCR, and whoever gets a number up to `permits` is inside.

    A: INCR lock → 1: inside, read 100
    B:                        INCR lock → 2: refused; the 2 stays
    X: DEL lock               a release by one who holds nothing
    B:                        INCR lock → 1: inside, read 100
    A: write 110              write 120                                    A's 10 are gone

    init() was meant to set 0 with a lease of 30 s, and its third argument is SETRANGE's offset:
    A: SETRANGE lock 30000 0 → 30001                   30 kB of zero bytes
    A: INCR lock → error: not an integer               nobody can acquire until someone deletes the key

Guarantees   with `permits=1`, mutual exclusion while nobody crashes, nobody releases what is not theirs, and the
             server forgets nothing.
Breaks when  a holder crashes: no command ever sets a lease, so the count stays for ever. Anyone's release deletes
             the key, and so does a server that forgets. With `permits` > 1 one holder's release forgets the other
             holders too, and a refused attempt's increment is never given back, so free permits stay unused. init()
             during a hold makes garbage of the count.
Costs        1 round trip to acquire (again every 100 ms while waiting), 1 to release.
Source       the daily-job article (C4, C5): INCR up to a range. Its `set(key, 0, n)` takes an offset for a time-out.
"""

from __future__ import annotations

from typing import ClassVar

from redis import Redis

from locks.base import AS_PUBLISHED, NO_FENCING, NO_LEASE, NO_RENEWER, Lock
from locks.hazards import BESIDE_THE_LOCK, Hazard
from locks.timing import milliseconds, poll_until


class CounterLock(Lock):
    """INCR ≤ permits; owners and leases there are none."""

    slug = "counter"
    title = "INCR up to a number of permits"
    source = "C4: a counter with INCR"
    guarantees = (
        "with one permit: mutual exclusion while nobody crashes, nobody releases what is not theirs, and the"
        " server forgets nothing"
    )
    breaks_when = "a holder crashes; anyone releases; the server loses the key; init() is called"
    round_trips = "1 + 1"
    withstands = BESIDE_THE_LOCK | {
        Hazard.CONTENTION,
        Hazard.PAUSE,
        Hazard.OVERRUN,
        Hazard.RENEWAL_DIES,
        Hazard.WAITER_INTERRUPTED,
        Hazard.CLOCK_JUMP,
        Hazard.STAMPEDE,
    }
    fails: ClassVar[dict[str, str]] = {
        "foreign-release": "DEL does not ask whose lock it is",
        "release-after-loss": "DEL does not ask whose lock it is",
        "release-repeated": "DEL does not ask whose lock it is",
        "holder-crash": "no lease is ever set",
        "lost-reply": "no lease: what a lost reply leaves behind stays for ever",
        "acquire-repeated": "INCR counts it twice: it waits for ever",
        "server-restart": "nothing tells the holder",
        "failover": "the replica has not got the key",
        "fairness": "polling",
    }
    not_applicable: ClassVar[dict[str, str]] = AS_PUBLISHED | NO_LEASE | NO_RENEWER | NO_FENCING

    def __init__(
        self, name: str, *, redis: Redis, permits: int = 1, lease: float = 30.0, poll: float = 0.1
    ) -> None:
        """`permits`: how many may be inside; `lease`: seconds, of which init() makes an offset; `poll`: seconds."""
        super().__init__(name)
        self.redis, self.permits, self.lease, self.poll = redis, permits, milliseconds(lease), poll
        self._held = False

    def init(self) -> None:
        """Meant: count 0, lease `lease`. Done: "0" is written `lease` milliseconds… bytes into the value."""
        self.redis.setrange(self.name, self.lease, "0")

    def acquire(self, timeout: float | None = None) -> bool:
        self._held = poll_until(self._attempt, self.poll, timeout)
        return self._held

    def _attempt(self) -> bool:
        return int(self.redis.incr(self.name)) <= self.permits  # one that is refused has counted all the same

    def release(self) -> None:
        self._held = False
        self.redis.delete(self.name)

    @property
    def held(self) -> bool:
        return self._held
