"""durable: the token lock, granted only when the server has it on disk.

    A: SET lock a7f3 NX PX 10000 → OK
    A: WAITAOF 1 0 1000 → [1, 0], read 100      it is in the append-only file, and the file is synced
    the server is killed and restarted: it loads the file
    B:                     SET lock 91c2 NX PX 10000 → nil

    A: SET lock a7f3 NX PX 10000 → OK, WAITAOF 1 0 1000 → [1, 0], read 100
    the server's disk is lost, or a replica without the key is promoted
    B:                     SET lock 91c2 NX PX 10000 → OK: both are inside

Guarantees   the same as `token`, also through a crash and restart of the server. The time spent waiting for the disk
             is subtracted from the validity. A key that is not on disk in time is deleted, and the lock is not
             acquired.
Breaks when  `token` breaks. Another machine takes over (`replicas` > 0 waits for their disks too). The machine reports
             a sync that did not happen. On a server without an append-only file, acquire raises LockUnsupported.
Costs        2 round trips to acquire, one of which waits for the disk (up to a second with appendfsync everysec);
             1 to release.
Source       the Valkey manual on WAITAOF.
"""

from __future__ import annotations

from typing import ClassVar

from redis import Redis

from locks.base import without
from locks.hazards import Hazard
from locks.replicated import ReplicatedLock
from locks.token_lock import TokenLock


class DurableLock(ReplicatedLock):
    """`token`, granted only when WAITAOF confirms it."""

    slug = "durable"
    waits_for_disk = True
    title = "Token lock synced to disk (WAITAOF)"
    source = "B16: an answer after the write is durable; Valkey manual, WAITAOF (F5)"
    guarantees = "as `token`, also through a restart of the server"
    breaks_when = "another machine takes over; the disk is lost; the section outlasts the lease"
    withstands = TokenLock.withstands | {Hazard.SERVER_RESTART}
    fails: ClassVar[dict[str, str]] = without(TokenLock.fails, "acquire-repeated", "server-restart")

    def __init__(
        self,
        name: str,
        *,
        redis: Redis,
        lease: float = 10.0,
        poll: float = 0.05,
        replicas: int = 0,
        confirm: float = 2.0,
    ) -> None:
        """`replicas`: how many replicas must have it on disk too. Seconds: `lease`; `poll` between two attempts;
        `confirm`, which is how long an attempt waits for the disk (less than the client's socket time-out)."""
        super().__init__(name, redis=redis, lease=lease, poll=poll, replicas=replicas, confirm=confirm)

    def _confirmed(self, connection: Redis) -> bool:
        local, replicas = connection.waitaof(1, self.replicas, self.confirm)
        return bool(local >= 1 and replicas >= self.replicas)

    def _refusal(self) -> str:
        return f"not on disk within {self.confirm} ms"
