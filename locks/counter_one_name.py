"""counter-one-name: `counter` with one serializer, so that its release deletes the key that its acquire counted.

    A: INCR lock → 1: inside, read 100
    B:                        INCR lock → 2: refused; the 2 stays
    X: DEL lock               a release by one who holds nothing
    B:                        INCR lock → 1: inside, read 100
    A: write 110              write 120                                    A's 10 are gone

Guarantees   with `permits=1`, mutual exclusion while nobody crashes, nobody releases what is not theirs, and the
             server forgets nothing. Nobody waits: a refused caller is told so at once.
Breaks when  a holder crashes: no command sets a lease, so the count stays for ever. Anyone's release deletes the
             key. A server that forgets the key lets a second holder in. With `permits` > 1 one holder's release
             forgets the other holders, and a refused attempt's increment is never given back, so free permits stay
             unused. init() during a hold makes garbage of the count.
Costs        1 round trip to acquire, 1 to release.
Source       the daily-job article, version 2 (C4, C5, C7), without its second serializer (C6). That much is ours.
"""

from __future__ import annotations

from typing import ClassVar

from locks.counter import CounterLock
from locks.hazards import NONE


class CounterOneNameLock(CounterLock):
    """INCR ≤ permits, without owners and leases."""

    slug = "counter-one-name"
    title = "INCR up to a number of permits, one key"
    source = "C4, C5, C7: a counter with INCR; its single serializer is ours"
    guarantees = (
        "with one permit: mutual exclusion while nobody crashes, nobody releases what is not theirs, and the"
        " server forgets nothing"
    )
    breaks_when = "a holder crashes; anyone releases; the server loses the key; init() is called"
    #: the balance is kept, and callers are refused though nothing has failed: that is no service
    withstands = NONE
    fails: ClassVar[dict[str, str]] = {
        "foreign-release": "DEL does not ask whose lock it is",
        "release-after-loss": "DEL does not ask whose lock it is",
        "release-repeated": "DEL does not ask whose lock it is",
        "holder-crash": "no lease is ever set",
        "lost-reply": "no lease: what a lost reply leaves behind stays for ever",
        "acquire-repeated": "INCR counts it twice, and the second count is refused",
        "server-restart": "nothing tells the holder",
        "failover": "the replica has not got the key",
        "wait-time": "nobody waits: one attempt",
    }

    @property
    def key(self) -> str:
        return self.name
