"""reentrant-inverted: the reentrant lock with the renewal script as it was first published.

    A: acquire → 1, read 100 (the business takes longer than the lease)
    A's timer, at half the lease: if not HEXISTS lock 5e1b then PEXPIRE …     not 1 → false; and 0 is true in Lua
    A's timer: reply 0, so it stops
    server: the lease ends
    B:                             acquire → 1, read 100, write 120
    A: write 110                                                              B's 20 are gone

Guarantees   the same as `token`, within one lease: the renewal never renews anything.
Breaks when  the section outlasts the lease, or `reentrant` breaks.
Costs        1 round trip to acquire, 1 to release, 1 wasted on the renewal.
Source       the lock-series article (D3): its first renewal script.
"""

from __future__ import annotations

from typing import ClassVar

from locks.base import AS_PUBLISHED, NO_FENCING
from locks.hazards import BESIDE_THE_LOCK, Hazard
from locks.reentrant import ReentrantLock
from locks.server import LuaScript


class ReentrantInvertedLock(ReentrantLock):
    """`reentrant`, whose renewal script has its condition inverted."""

    slug = "reentrant-inverted"
    title = "Reentrant lock, renewal inverted"
    source = "D3: the first renewal script"
    guarantees = "mutual exclusion between objects while the section fits the lease"
    breaks_when = "the section outlasts the lease: the renewal never renews; threads share the object"
    round_trips = "1 + 1, and 1 wasted"
    withstands = BESIDE_THE_LOCK | {
        Hazard.CONTENTION,
        Hazard.CRASH,
        Hazard.WORKER_CRASH,
        Hazard.RENEWAL_LIVES,
        Hazard.FOREIGN_RELEASE,
        Hazard.WAITER_INTERRUPTED,
        Hazard.STAMPEDE,
        Hazard.CONNECTIONS,
    }
    fails: ClassVar[dict[str, str]] = ReentrantLock.fails | {
        "renewal": "the condition of the renewal script is inverted, and in Lua 0 is true"
    }
    not_applicable: ClassVar[dict[str, str]] = AS_PUBLISHED | NO_FENCING

    renew_script = LuaScript("reentrant_inverted_renew.lua")
