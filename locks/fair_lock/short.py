"""fair-lock's short way: acquire and release when nothing is unusual, alone or in the queue.

Between two switches of the process the caches are cold, and each step of Python costs ten times what it costs in
a loop of its own. So here stands in two methods, without a call that can be spared, what FairLock and Home do step
by step. Whatever is not as usual goes the long way, with what was sent and what was read so far.

    nobody else about   acquire: first → the number          release: DELIFEQ → 1
    others about        acquire: quiet → (nothing) … message  release: script → 2, the next one's message

A quiet question has no answer but the hand-over's message: a waiter is woken once.
"""

from __future__ import annotations

from abc import abstractmethod
from time import monotonic
from typing import Any

from redis.connection import AbstractConnection

from locks.base import Lock
from locks.fair_lock.attempt import Calls
from locks.fair_lock.call import Call
from locks.fair_lock.grant import Grant, Grants, Terms, here
from locks.fair_lock.heard import understood
from locks.fair_lock.home import Begun, Home
from locks.fair_lock.wire import ENOUGH, INCOMPLETE, REST, Wire

_class: Any = AbstractConnection

ANSWERS = FREED, HANDED_OVER = b":1\r\n", b":2\r\n"


class ShortWay(Lock):
    """`acquire` and `release` of FairLock. The methods with an underscore are the long way."""

    _home: Home
    _calls: Calls
    _grants: Grants
    _terms: Terms

    @abstractmethod
    def _acquire(self, timeout: float | None, begun: Begun | None = None) -> bool: ...

    @abstractmethod
    def _release(self) -> None: ...

    @abstractmethod
    def _give_back(self, grant: Grant, begun: tuple[Wire, Any] | None = None) -> None: ...

    def acquire(self, timeout: float | None = None) -> bool:
        """Raises LockLost to a thread whose lock was lost and not yet released, LockError to one that holds
        it while `reentrant` is off."""
        home, grants, calls = self._home, self._grants, self._calls
        client, wire = home.client, None
        if timeout is not None or grants or home.abandoned or _class.send_packed_command is not client.sender:
            return self._acquire(timeout)
        try:
            wire = client.idle.pop()
            word, told = wire.ready[calls].pop()
        except LookupError:
            if wire is not None:
                client.idle.append(wire)
            return self._acquire(None)
        quiet, terms, thread = calls.busy and client.quiet, self._terms, here.thread
        question = (calls.quiet if quiet else calls.acquire).packed + word
        try:
            since = monotonic()  # the lease counts from before the question
            try:
                wire.put(question)
            except OSError:
                wire.disconnect()  # so nothing is heard either
            try:
                heard: Any = wire.hear(ENOUGH)
            except OSError:
                heard = b""
            giver: Call = calls.release
            if not quiet and heard[:1] == b":" and heard[-1:] == b"\n" and heard[1:-2].isdigit():
                giver = calls.delete if client.deletes else giver
            elif not quiet or heard[:-REST] != told or monotonic() - since > terms.half:
                heard = understood(client, wire, word, heard, quiet=quiet, until=since + terms.half)
            if type(heard) is bytes or (heard is not INCOMPLETE and heard > 0):
                grants[thread] = Grant((word, heard, since, terms, thread, giver.packed))
                if not grants.watched:
                    client.renewal.watch(grants)
                client.idle.append(wire)
                return True
        except BaseException:
            grants.pop(thread, None)
            home.give_up(wire, word, ask=True)
            raise
        return self._acquire(None, (wire, word, since, heard))

    def release(self) -> None:
        """Raises LockNotHeld without a holding, LockLost when the lock was lost before the release."""
        grants = self._grants
        grant = grants.get(here.thread)
        client = self._home.client
        if grant is None or not grant.usual or _class.send_packed_command is not client.sender:
            return self._release()
        try:
            wire: Any = client.idle.pop()
        except IndexError:
            return self._release()
        del grants[grant[4]]
        try:
            try:
                wire.put(grant[5] + grant[0])
            except OSError:  # it was not sent, so there is no doubt what became of it
                wire.disconnect()
                client.give_back(wire)
                return self._give_back(grant)
            try:
                heard = wire.hear(ENOUGH)
            except OSError:
                heard = b""
            if heard in ANSWERS:
                client.idle.append(wire)
                self._calls.busy = heard == HANDED_OVER
                return None
            wire.keep(heard)
        except BaseException:
            self._home.give_up(wire, grant.word, ask=False)
            raise
        return self._give_back(grant, (wire, INCOMPLETE))
