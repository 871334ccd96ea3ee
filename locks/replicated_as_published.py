"""replicated-as-published: SET NX EX, then WAIT for a replica, then continue whatever WAIT answered.

    A: SET lock a7f3 NX EX 5 → OK
    A: WAIT 1 5000 → 0                     after 5 s no replica had confirmed; nobody looks at the 0
    server: the lease of 5 s is over       the wait has eaten it
    A: read 100                            B: SET lock 91c2 NX EX 5 → OK, read 100
    A: write 110                           B: write 120                        A's 10 are gone

    and with less delay:
    A: SET lock a7f3 → OK, WAIT 1 5000 → 0, read 100
    the primary dies; its replica, which never got the key, is promoted
    B:                                     SET lock 91c2 NX EX 5 → OK: both are inside

Guarantees   mutual exclusion while the section and the wait fit the lease; through a failover only if the replicas
             happened to confirm. A late holder is not told. A forked child may release its parent's lock.
Breaks when  `token` breaks. The replicas do not confirm: the lock continues without them. The wait runs while the lease
             runs, and can use all of it up. If the client does not wait longer for a reply than the server waits for
             the replicas (redis-py's default is 5 s too), an unconfirmed acquire raises, and its key blocks everyone
             until the lease ends.
Costs        2 round trips to acquire, one of which waits for the replica; 1 to release.
Source       the sample in the Tair manual (B13): `SET … NX EX 5`, `WAIT 1 5000`. The text beside it (B12) says to
             continue only if WAIT returns 1: that is `replicated`.
"""

from __future__ import annotations

import secrets
from typing import ClassVar

from redis import Redis

from locks.base import AS_PUBLISHED, NO_EXTENSION, NO_FENCING, NO_RENEWER, Lock
from locks.hazards import NONE
from locks.server import LuaScript
from locks.timing import milliseconds, poll_until, whole_seconds
from locks.token_lock import TokenLock


class ReplicatedAsPublishedLock(Lock):
    """A token lock that waits for its replica and ignores the answer."""

    slug = "replicated-as-published"
    title = "SET NX EX and WAIT, its answer ignored"
    source = "B13: the sample, which does not check the answer of WAIT"
    guarantees = (
        "mutual exclusion while the section and the wait fit the lease; through a failover only if the replicas"
        " happened to confirm"
    )
    breaks_when = "the replicas do not confirm; the wait uses up the lease; a loss is not reported"
    round_trips = "2 + 1"
    lease_step = 1.0
    #: on a server without a replica, the first acquire already waits until its own lease is over
    withstands = NONE
    fails: ClassVar[dict[str, str]] = TokenLock.fails | {
        "failover": "it continues when the replica did not confirm",
    }
    not_applicable: ClassVar[dict[str, str]] = AS_PUBLISHED | NO_EXTENSION | NO_RENEWER | NO_FENCING

    release_script = LuaScript("token_release.lua")

    def __init__(
        self,
        name: str,
        *,
        redis: Redis,
        lease: float = 5.0,
        poll: float = 0.1,
        replicas: int = 1,
        confirm: float = 5.0,
    ) -> None:
        """`lease`: whole seconds, for EX. `replicas`: how many replicas WAIT waits for. `confirm`: for how many seconds
        (the client's socket time-out must be longer). `poll`: seconds between two attempts."""
        super().__init__(name)
        self.redis, self.lease, self.poll = redis, whole_seconds(lease), poll
        self.replicas, self.confirm = replicas, milliseconds(confirm)

    def acquire(self, timeout: float | None = None) -> bool:
        token = secrets.token_hex(16).encode()

        if not poll_until(lambda: self._attempt(token), self.poll, timeout):
            return False
        self.token = token
        return True

    def _attempt(self, token: bytes) -> bool:
        # WAIT confirms what its own connection wrote
        with self.redis.client() as connection:  # type: ignore[no-untyped-call]
            if not connection.set(self.name, token, nx=True, ex=self.lease):
                return False
            connection.wait(self.replicas, self.confirm)  # as published: the number that confirmed is ignored
        return True

    def release(self) -> None:
        token, self.token = self.token or b"", None
        self.release_script(self.redis, [self.name], [token])

    @property
    def held(self) -> bool:
        return self.token is not None
