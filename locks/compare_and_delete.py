"""compare-and-delete: the token lock without Lua, by the commands that Valkey 9 has for it.

    A: SET lock a7f3 NX PX 10000 → OK
    A: SET lock a7f3 IFEQ a7f3 PX 10000 → OK          extend: only while it is mine
    A: DELIFEQ lock a7f3 → 1                          release: only while it is mine

    and the same sequence breaks it as breaks `token`:
    A: SET lock a7f3 NX PX 10000 → OK, read 100, (paused 11 s)
    B:                                 SET lock 91c2 NX PX 10000 → OK, read 100, write 120
    A: write 110                                                       B's 20 are gone
    A: DELIFEQ lock a7f3 → 0: LockLost

Guarantees   what `token` does.
Breaks when  what breaks `token`. A server older than Valkey 9 lacks the commands: LockUnsupported, at the
             first acquire of a client, before anything is locked. While the server's memory is full, it refuses
             SET, also one that extends (`token`'s script can): LockUnavailable, and the lease runs out.
Costs        1 round trip to acquire, 1 to release, 1 to extend; one more, once for each client, to ask the
             server for the commands. DELIFEQ runs some 15 % faster than the script.
Source       Valkey: SET … IFEQ (8.1), DELIFEQ (9.0).
"""

from __future__ import annotations

import secrets
import time
from typing import ClassVar
from weakref import WeakSet

from redis import Redis

from locks.errors import LockLost
from locks.server import command, typed_errors
from locks.timing import checked_wait
from locks.token_lock import TokenLock


class CompareAndDeleteLock(TokenLock):
    """`token` on DELIFEQ and SET … IFEQ instead of scripts."""

    slug = "compare-and-delete"
    title = "SET NX PX with a token, DELIFEQ"
    source = "B6: compare-and-delete; Valkey manual, DELIFEQ (F5)"
    breaks_when = "as `token`; needs Valkey 9 (a clear error elsewhere)"
    fails: ClassVar[dict[str, str]] = TokenLock.fails

    _asked: ClassVar[WeakSet[Redis]] = WeakSet()

    def acquire(self, timeout: float | None = None) -> bool:
        """Raises LockUnsupported, before it locks anything, on a server without DELIFEQ."""
        checked_wait(timeout)
        if self.redis not in self._asked:
            with typed_errors(self.name):
                command(
                    self.redis, "DELIFEQ", self.name, secrets.token_hex(16)
                )  # nobody's token: deletes nothing
            self._asked.add(self.redis)
        return super().acquire(timeout)

    def release(self) -> None:
        """Raises LockNotHeld without a holding, LockLost when the lease had ended before."""
        token, self.token = self._mine("release"), None
        with typed_errors(self.name):
            deleted = command(self.redis, "DELIFEQ", self.name, token)
        if not deleted:
            raise LockLost(
                f"{self.name}: the lease ended before the release; re-read what was written inside"
            )

    def extend(self) -> None:
        """Raises LockNotHeld without a holding, LockLost when the lease had ended before."""
        token, asked = self._mine("extend"), time.monotonic()
        with typed_errors(self.name):
            extended = command(self.redis, "SET", self.name, token, "IFEQ", token, "PX", self.lease)
        if not extended:
            self.token = None
            raise LockLost(f"{self.name}: the lease ended before the extension; stop writing")
        self._valid_until = asked + self.lease / 1000
