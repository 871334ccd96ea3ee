"""compare-and-delete: the token lock without Lua. It uses the commands that Valkey 9 has for this.

    A: SET lock a7f3 NX PX 10000 → OK
    A: SET lock a7f3 IFEQ a7f3 PX 10000 → OK          extend: only while it is mine
    A: DELIFEQ lock a7f3 → 1                          release: only while it is mine

    and what breaks `token` breaks it too:
    A: SET lock a7f3 NX PX 10000 → OK, read 100, (paused 11 s)
    B:                                 SET lock 91c2 NX PX 10000 → OK, read 100, write 120
    A: write 110                                                       B's 20 are gone
    A: DELIFEQ lock a7f3 → 0: LockLost

Guarantees   the same as `token`.
Breaks when  `token` breaks. A server older than Valkey 9 lacks the commands: a client's first acquire raises
             LockUnsupported before it locks anything. A server whose memory is full refuses every SET, including
             the one that extends (`token`'s script still extends): LockUnavailable, and the lease runs out.
Costs        1 round trip to acquire, 1 to release, 1 to extend. Each client spends one more, once, to check that
             the server has the commands. DELIFEQ runs about 15 % faster than the script.
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
    """`token` with DELIFEQ and SET … IFEQ instead of scripts."""

    slug = "compare-and-delete"
    title = "SET NX PX with a token, DELIFEQ"
    source = "B6: compare-and-delete; Valkey manual, DELIFEQ (F5)"
    breaks_when = "`token` breaks; it needs Valkey 9 (elsewhere it raises a clear error)"
    fails: ClassVar[dict[str, str]] = TokenLock.fails

    _asked: ClassVar[WeakSet[Redis]] = WeakSet()

    def acquire(self, timeout: float | None = None) -> bool:
        """Raises LockUnsupported on a server without DELIFEQ, before it locks anything."""
        checked_wait(timeout)
        if self.redis not in self._asked:
            with typed_errors(self.name):
                command(
                    self.redis, "DELIFEQ", self.name, secrets.token_hex(16)
                )  # a token that nobody has: deletes nothing
            self._asked.add(self.redis)
        return super().acquire(timeout)

    def release(self) -> None:
        """Raises LockNotHeld if this object holds nothing, LockLost if the lease had already ended."""
        token, self.token = self._mine("release"), None
        with typed_errors(self.name):
            deleted = command(self.redis, "DELIFEQ", self.name, token)
        if not deleted:
            raise LockLost(
                f"{self.name}: the lease ended before the release; re-read what was written inside"
            )

    def extend(self) -> None:
        """Raises LockNotHeld if this object holds nothing, LockLost if the lease had already ended."""
        token, asked = self._mine("extend"), time.monotonic()
        with typed_errors(self.name):
            extended = command(self.redis, "SET", self.name, token, "IFEQ", token, "PX", self.lease)
        if not extended:
            self.token = None
            raise LockLost(f"{self.name}: the lease ended before the extension; stop writing")
        self._valid_until = asked + self.lease / 1000
