"""redlock: the same token on N independent servers. A quorum of M of them is the lock.

    A: SET lock a7f3 NX PX on 1, 2, 3 → OK, OK, (node 3 is down)      2 of 3: a bare majority
    node 3 comes back, empty
    node 2 restarts without persistence, or its clock jumps ahead: its lease is gone
    B:                              SET lock 91c2 NX PX → nil, OK, OK      2 of 3: B is inside too
    A: read 100, write 110          B: read 100, write 120                 A's 10 are gone

Guarantees   mutual exclusion while the section fits the validity time and fewer than 2M − N of the nodes that could
             be taken forget the lock or jump in time. One node may be down without an outage.
Breaks when  the section or a pause outlasts the lease (as `token`). A lock on a bare majority loses one node. The
             clocks of enough nodes jump. M ≤ N/2: two quorums that share no node. Nobody can fence it: there is no
             number that grows. docs/redlock.md computes how often, and why it is not (k %)^N.
Costs        N round trips to acquire and N to release, one after the other.
Source       S. Sanfilippo, "Distributed Locks with Redis"; M. Kleppmann's analysis (2016); B8, D8.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from redis import Redis
from redis.exceptions import RedisError

from locks.base import NO_FENCING, NO_RENEWER
from locks.errors import LockLost, LockUnavailable
from locks.hazards import Hazard
from locks.one_holding import OneHolding
from locks.server import LuaScript, answering, typed_errors
from locks.timing import milliseconds, poll_until
from locks.token_lock import TokenLock


class RedlockLock(OneHolding):
    """One token, N servers that know nothing of each other, a quorum."""

    slug = "redlock"
    title = "Redlock: a quorum of independent servers"
    source = "B8, D8: Redlock; Redis manual (F1)"
    guarantees = "as `token`, and one server of three may be down"
    breaks_when = "section outlasts the lease; a node of a bare majority forgets or jumps in time; M ≤ N/2"
    round_trips = "N + N"
    lease_step = 0.001
    withstands = TokenLock.withstands | {Hazard.PARTITION}
    fails: ClassVar[dict[str, str]] = {"fairness": "polling with a random delay"}
    not_applicable: ClassVar[dict[str, str]] = NO_RENEWER | NO_FENCING

    release_script = LuaScript("token_release.lua")
    extend_script = LuaScript("token_extend.lua")

    def __init__(
        self,
        name: str,
        *,
        redis_nodes: Sequence[Redis],
        lease: float = 10.0,
        quorum: int | None = None,
        poll: float = 0.2,
        drift: float = 0.01,
    ) -> None:
        """`redis_nodes`: the N servers, each with a short socket time-out. `quorum`: M, by default N // 2 + 1. Less is
        no lock; it is allowed so that it can be shown. Seconds: `lease`, `poll` (the longest random delay between two
        attempts). `drift`: the part of the lease by which clocks may differ."""
        super().__init__(name)
        self.nodes = [answering(node) for node in redis_nodes]
        self.quorum = len(self.nodes) // 2 + 1 if quorum is None else quorum
        if not 1 <= self.quorum <= len(self.nodes):
            raise ValueError(
                f"a quorum of {self.quorum} among {len(self.nodes)} nodes: give 1 to {len(self.nodes)}"
            )
        self.lease, self.poll, self.drift = milliseconds(lease), poll, lease * drift + 0.002
        if not (drift >= 0 and self.drift < lease):
            raise ValueError(
                f"{lease!r} s with a drift of {drift!r}: give a longer lease, or a drift between 0 and 1"
            )

    def acquire(self, timeout: float | None = None) -> bool:
        """Raises LockUnavailable when fewer than a quorum of the nodes answer."""
        return poll_until(self._attempt, self.poll, timeout, jitter=1.0)

    def _attempt(self) -> bool:
        token, asked = secrets.token_hex(16).encode(), time.monotonic()
        try:
            answers = self._ask(lambda node: node.set(self.name, token, nx=True, px=self.lease))
        except (
            BaseException
        ):  # interrupted, or this user may not ask a node: what the others granted goes back
            self._give_back(token, self.nodes)
            raise
        until = asked + self.lease / 1000 - self.drift
        if answers.count(True) >= self.quorum and time.monotonic() < until:
            self._granted(token, until)
            return True
        self._give_back(token, self.nodes)
        self._check_reachable(answers)
        return False

    def _give_back(self, token: bytes, nodes: Sequence[Redis]) -> None:
        """Release on these nodes, also where no reply came. Where that fails, the lease ends it."""
        for node in nodes:
            with suppress(RedisError):
                self.release_script(node, [self.name], [token])

    def _ask(self, question: Callable[[Redis], Any]) -> list[bool | None]:
        """Put `question` to the nodes. Return what each said, as a bool; None for one that cannot be asked."""
        answers: list[bool | None] = []
        for node in self.nodes:
            try:
                with typed_errors(self.name):
                    answers.append(bool(question(node)))
            except LockUnavailable:
                answers.append(None)
        return answers

    def _check_reachable(self, answers: list[bool | None]) -> None:
        answered = len(answers) - answers.count(None)
        if answered < self.quorum:
            raise LockUnavailable(
                f"{self.name}: {answered} of {len(answers)} nodes answered, {self.quorum} needed"
            )

    def release(self) -> None:
        """Raises LockNotHeld without a holding, LockLost when too few nodes still had it."""
        token, self.token = self._mine("release"), None
        try:
            answers = self._ask(lambda node: self.release_script(node, [self.name], [token]))
        except BaseException:  # as in an attempt
            self._give_back(token, self.nodes)
            raise
        self._judge(answers)

    def extend(self) -> None:
        """Raises LockNotHeld without a holding, LockLost when too few nodes can still have it, LockUnavailable when
        fewer than a quorum have confirmed the extension: its validity then ends as it would have."""
        token, asked = self._mine("extend"), time.monotonic()
        answers = self._ask(lambda node: self.extend_script(node, [self.name], [token, self.lease]))
        self._judge(answers)
        if (extended := answers.count(True)) < self.quorum:
            raise LockUnavailable(f"{self.name}: {extended} nodes extended it, {self.quorum} needed")
        self._valid_until = asked + self.lease / 1000 - self.drift

    def _judge(self, answers: list[bool | None]) -> None:
        if answers.count(True) + answers.count(None) < self.quorum:
            self.token = None
            raise LockLost(f"{self.name}: {answers.count(True)} of {len(answers)} nodes still had it")
        self._check_reachable(answers)
