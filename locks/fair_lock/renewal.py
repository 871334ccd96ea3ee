"""Renewal: one thread for each Redis client renews all locks that are held through it, and notices every loss.

    holder   acquire ──────────────── working ──────────────── release
    thread            ⅓ lease: extend    ⅓ lease: extend          (nothing held: the thread ends)

The thread wakes after a third of the shortest lease, so a short section costs no command and no wake-up. An
extension checks whose lock it is: one that comes too late finds another's token and changes nothing. Renewal ends
with the release, with the holder's thread, and at the grant's cap. When a lease ends without an extension, for
whatever reason, the grant is lost: by the server's answer, or by this process's clock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from redis.exceptions import RedisError

from locks.fair_lock.grant import Grant, Grants
from locks.fair_lock.wire import Wire

#: renewals in each lease
TURNS = 3


class Renewal:
    """The locks of one Redis client that were taken lately, and the thread that renews those that are still held.
    The thread lives as long as there are any."""

    def __init__(self, new_wire: Callable[[], Wire], generation: int) -> None:
        self._new_wire, self._generation = new_wire, generation
        self._watched: set[Grants] = set()
        self._shortest = float("inf")
        self._gate = threading.Lock()
        self._changed = threading.Event()
        self._running = False

    def watch(self, grants: Grants) -> None:
        """Watch `grants` until the thread finds them empty. Later acquires until then cost no lock, no system call and
        no entry."""
        grants.of_generation(self._generation)
        self._watched.add(grants)
        grants.watched = True
        if not self._running or grants.lease < self._shortest:
            self._start(grants.lease)

    def forget_all(self) -> None:
        """Called in a forked child: the locks are its parent's."""
        for grants in self._watched:
            grants.clear()
            grants.watched = False

    def _start(self, lease: float) -> None:
        with self._gate:
            self._shortest = min(self._shortest, lease)
            if self._running:
                self._changed.set()
                return
            self._running = True
            try:
                threading.Thread(target=self._run, name="lock-renewal", daemon=True).start()
            except BaseException:  # no thread could be started
                self._stopped()
                raise

    def _run(self) -> None:
        try:
            wire = self._new_wire()
            pause = self._shortest / TURNS  # nothing is due sooner, and short sections share one thread
            while True:
                self._changed.wait(pause)
                self._changed.clear()
                if not self._continues():
                    break
                pause = self._round(wire)
        except BaseException:  # even if the thread is killed
            self._stopped()
            raise
        wire.disconnect()  # by now an acquire may have started the next thread

    def _stopped(self) -> None:
        """The thread is gone: the next acquire starts another."""
        self._running = False
        for grants in list(self._watched):
            grants.watched = False

    def _continues(self) -> bool:
        """Drop what is no longer held, and say whether anything is left. An acquire writes its grant and then checks
        `watched`. This method does the reverse, so no grant is missed."""
        with self._gate:
            watched = list(self._watched)  # a copy, because acquires add to the set meanwhile
            for grants in [each for each in watched if not each.held]:
                grants.watched = False
                self._watched.discard(grants)
                if grants.held:
                    self._watched.add(grants)
                    grants.watched = True
            self._running = False
            self._running = bool(self._watched)
            if not self._running:
                self._shortest = float("inf")
            return self._running

    def _round(self, wire: Wire) -> float:
        """Renew what is due. Return the seconds until something can be due again."""
        pause = self._shortest / TURNS  # a grant made meanwhile is not due sooner
        for grants in list(self._watched):
            for grant in list(grants.values()):
                pause = min(pause, self._look_after(wire, grants, grant))
        return pause

    def _look_after(self, wire: Wire, grants: Grants, grant: Grant) -> float:
        """Return the seconds until this grant can be due."""
        now, lease = time.monotonic(), grants.lease
        if grant.lost:
            return lease
        over = grant.since + lease
        due = grant.since + lease / TURNS if grant.renewable else over
        if now >= over:
            if not grant.thread.is_alive():  # it will never be released
                grants.pop(grant.thread, None)
            grant.lose(aside=True)
            return lease
        return self._renew(wire, grants, grant) if now >= due else due - now

    def _renew(self, wire: Wire, grants: Grants, grant: Grant) -> float:
        """Return the seconds until this grant is due again."""
        turn, asked = grants.lease / TURNS, time.monotonic()
        try:
            mine = wire.ask(grant.terms.questions.extend, grant.word, timeout=turn)
        except RedisError as error:
            self._follow(grants, grant, error)
            return turn / 4  # try again soon; `lose` follows when the lease is over
        if mine:
            grant.renewed(asked)
        elif grants.get(grant.thread) is grant:  # otherwise it was released meanwhile
            grant.lose(aside=True)
        return turn

    def _follow(self, grants: Grants, grant: Grant, error: RedisError) -> None:
        """In a Cluster the key may have moved to another server: continue the renewal there."""
        lock = grant.terms.lock()
        renewal = self if lock is None else lock.renewal_after(error)
        if renewal is not self:
            self._watched.discard(grants)
            renewal.watch(grants)
