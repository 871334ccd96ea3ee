"""try-lock-checked: `try-lock` whose unlock checks whose lock it is. A worker that was only busy gets an error from it.

    A: SET lock a7f3 NX PX 10000 → OK
    B:                                SET … → nil, … for 5 s: "busy"
    B:                                finally: unlock() → error: not held       the caller never hears "busy"
    B's caller: would try again after "busy"; gets an error that looks like a fault of its program

Guarantees   mutual exclusion while the section fits the lease, as `token`. A waiter that gives up costs no money. A
             late holder hears LockNotHeld. A forked child may release its parent's lock.
Breaks when  the section outlasts the lease. The error of unlock() hides "busy", so callers that retry on "busy" do
             not retry.
Costs        1 round trip to acquire, 1 to release; while waiting, as many as the connection carries.
Source       as `try-lock` (D5, D6), with a checked unlock; that one is ours.
"""

from __future__ import annotations

from typing import ClassVar

from locks.base import AS_PUBLISHED, NO_EXTENSION, NO_FENCING, NO_RENEWER
from locks.errors import LockNotHeld
from locks.hazards import OWNED_LEASE, Hazard
from locks.server import LuaScript
from locks.try_lock import TryLock


class TryLockChecked(TryLock):
    """`try-lock` with compare-and-delete. Unlocking what is not held raises, and that error hides "busy"."""

    slug = "try-lock-checked"
    title = "Spin, then unlock in any case (checked)"
    guarantees = "mutual exclusion while the section fits the lease"
    breaks_when = "section or pause outlasts the lease; the error of unlock() hides that it was only busy"
    withstands = OWNED_LEASE | {Hazard.RENEWAL_DIES, Hazard.CONNECTIONS}
    fails: ClassVar[dict[str, str]] = {
        "waiter-gives-up": "finally: unlock(), though not held: its error takes the place of LockTimeout",
        "waiter-cancelled": "the same: its error takes the place of the interruption",
        "acquire-repeated": "SET NX refuses it what it has set itself: it waits for its own lease",
        "server-restart": "nothing tells the holder",
        "failover": "the replica has not got the key",
        "fairness": "spinning: the first to ask after the release gets it",
    }
    not_applicable: ClassVar[dict[str, str]] = AS_PUBLISHED | NO_EXTENSION | NO_RENEWER | NO_FENCING

    release_script = LuaScript("token_release.lua")

    def release(self) -> None:
        """Raises LockNotHeld when the lock is not this object's (never was, or no longer is)."""
        token, self.token = self.token or b"", None
        if not self.release_script(self.redis, [self.name], [token]):
            raise LockNotHeld(f"{self.name}: attempt to unlock, not locked by this object")
