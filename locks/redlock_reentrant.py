"""redlock-reentrant: Redlock whose nodes count the entries of an owner. The counts come apart.

    A: acquire         node 1: 1    node 2: 1    node 3: (down)
    A: acquire again   node 1: 2    node 2: 2    node 3: 1          it is back: its first entry is missing
    A: release         node 1: 1    node 2: 1    node 3: 0, deleted
    (node 2 restarts, empty)
    B: acquire         node 1: no   node 2: 1    node 3: 1          2 of 3: B is inside
    A: still inside, by its own count: read 100, write 110          B: read 100, write 120

    with `cascade=True`, the client that the article describes:
    A: release         node 1: 1    node 2: 1    node 3: 0 → "it is free": release on all nodes: 0, 0, 0

Guarantees   what `redlock` does, while no node misses an entry or an exit.
Breaks when  a node misses one. Its count is then lower than the others' (it frees the lock too early) or higher
             (it keeps the lock until the lease ends), and nothing compares the counts. What breaks `redlock`. An
             interrupted acquire or release is undone, or done, on all nodes but the one that was being asked: that
             one may have counted, or not.
Costs        N round trips to acquire and N to release, for every entry.
Source       the lock-series article's remark (D9): the counts of the nodes differ, and one node at 0 triggers a
             release on all.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Sequence
from typing import ClassVar

from redis import Redis

from locks.base import NO_FENCING, NO_RENEWER
from locks.errors import LockNotHeld
from locks.redlock import RedlockLock
from locks.server import LuaScript


class RedlockReentrantLock(RedlockLock):
    """Redlock on counted hashes. The owner is the object, its process and its thread."""

    slug = "redlock-reentrant"
    title = "Redlock with counted entries"
    source = "D9: reentrant Redlock"
    breaks_when = "a node misses an entry or an exit: the counts differ; and what breaks `redlock`"
    round_trips = "N + N for every entry"
    fails: ClassVar[dict[str, str]] = RedlockLock.fails
    not_applicable: ClassVar[dict[str, str]] = NO_RENEWER | NO_FENCING

    acquire_script = LuaScript("reentrant_acquire.lua")
    release_script = LuaScript("reentrant_release.lua")
    extend_script = LuaScript("reentrant_renew.lua")

    def __init__(
        self,
        name: str,
        *,
        redis_nodes: Sequence[Redis],
        lease: float = 10.0,
        quorum: int | None = None,
        poll: float = 0.2,
        drift: float = 0.01,
        cascade: bool = False,
    ) -> None:
        """As `redlock`. `cascade`: does a count of 0 on one node make it release on all of them, as D9 says?"""
        self.cascade = cascade
        self._holding = _Holding()
        super().__init__(name, redis_nodes=redis_nodes, lease=lease, quorum=quorum, poll=poll, drift=drift)
        self._object = secrets.token_hex(16)

    def _owner(self) -> bytes:
        return f"{self._object}:{os.getpid()}:{_thread.name}".encode()

    def _attempt(self) -> bool:
        token, asked = self._owner(), time.monotonic()
        entered: list[
            Redis
        ] = []  # also where no reply came: it may have counted, or not. Here the counts come apart.

        def enter(node: Redis) -> bool:
            entered.append(node)
            if self.acquire_script(node, [self.name], [token, self.lease]):
                return True
            entered.pop()
            return False

        try:
            answers = self._ask(enter)
        except BaseException:  # as in `redlock`
            self._give_back(token, entered)
            raise
        if answers.count(True) >= self.quorum and time.monotonic() - asked < self.lease / 1000 - self.drift:
            own = self._own()
            own.entries = (own.entries if own.token else 0) + 1  # a loss ends the count
            self._granted(token, asked + self.lease / 1000 - self.drift)
            return True
        self._give_back(token, entered)
        self._check_reachable(answers)
        return False

    def release(self) -> None:
        """Leave once. Raises LockNotHeld without a holding of this thread, LockLost when too few nodes still had
        it."""
        token, own = self._mine("release"), self._own()
        own.entries -= 1
        if not own.entries:
            own.token = None
        inside, freed = list(self.nodes), []

        def leave(node: Redis) -> bool:
            inside.remove(node)
            left = self.release_script(node, [self.name], [token])
            freed.append(left == 1)
            return left is not None

        try:
            answers = self._ask(leave)
        except BaseException:  # as in an attempt
            self._give_back(token, inside)
            raise
        if self.cascade and any(freed):
            self._give_back(token, self.nodes)
        self._judge(answers)

    def _mine(self, verb: str) -> bytes:
        if (token := self.token) is None:
            raise LockNotHeld(f"{self.name}: {verb} by a thread that does not hold it")
        return token

    def _own(self) -> _Holding:
        """This thread's. A forked child holds nothing: what it inherited is its parent's."""
        own = self._holding
        if own.process != os.getpid():
            own.begin()
        return own

    @property
    def token(self) -> bytes | None:  # of this thread, as `held` is
        return self._own().token

    @token.setter
    def token(self, token: bytes | None) -> None:
        self._own().token = token

    @property
    def _process(self) -> int:
        return self._own().process

    @_process.setter
    def _process(self, process: int) -> None:
        self._own().process = process

    @property
    def _valid_until(self) -> float:
        return self._own().valid_until

    @_valid_until.setter
    def _valid_until(self, until: float) -> None:
        self._own().valid_until = until


class _Holding(threading.local):
    """What a thread that shares the object holds of it."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.token: bytes | None = None
        self.entries, self.valid_until = 0, 0.0
        self.process = os.getpid()


class _Thread(threading.local):
    """The number of a dead thread may be another's soon, its name here is nobody else's."""

    def __init__(self) -> None:
        self.name = secrets.token_hex(8)


_thread = _Thread()
