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
from locks.call import Call
from locks.fair_lock_attempt import SILENT, Calls
from locks.fair_lock_grant import Grant, Grants, Terms, here
from locks.fair_lock_home import Begun, Home
from locks.wire import INCOMPLETE, Wire

_class: Any = AbstractConnection


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
        client = home.client
        if timeout is not None or grants or home.abandoned or _class.send_packed_command is not client.sender:
            return self._acquire(timeout)
        try:
            wire: Any = client.idle.pop()
        except IndexError:
            return self._acquire(None)
        try:
            question, word = wire.ready[calls].pop()
        except LookupError:
            client.idle.append(wire)
            return self._acquire(None)
        reply: Any = SILENT
        giver: Call = calls.delete if client.deletes else calls.release
        try:
            since = monotonic()  # the lease counts from before the question
            try:
                if calls.busy and client.quiet:
                    wire.put(calls.quiet.packed + word)
                else:
                    wire.put(question)
                    reply = wire.get()
            except OSError:
                wire.disconnect()
                reply = INCOMPLETE
            if type(reply) is int and reply < 0 and client.direct:
                reply, giver = self._woken(wire, word, since, reply), calls.release
            if type(reply) is int and reply > 0:
                thread = here.thread
                grants[thread] = Grant((word, reply, since, self._terms, thread, giver.packed))
                if not grants.watched:
                    client.renewal.watch(grants)
                client.idle.append(wire)
                return True
        except BaseException:
            grants.pop(here.thread, None)
            home.give_up(wire, word, ask=True)
            raise
        return self._acquire(None, (wire, word, since, reply))

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
            reply = wire.get()
            if type(reply) is int and reply > 0:
                client.idle.append(wire)
                self._calls.busy = reply == 2
                return None
        except BaseException:
            self._home.give_up(wire, grant.word, ask=False)
            raise
        return self._give_back(grant, (wire, reply))

    def _woken(self, wire: Wire, word: bytes, since: float, reply: int) -> Any:
        """Return the number that came with the hand-over; else what the long way has to know: -1, to ask again at
        once."""
        told = wire.get()
        if told is INCOMPLETE:
            return reply
        if not isinstance(told, list):  # an error, perhaps with another reply on its way
            wire.disconnect()
            self._home.client.quiet = False
            return INCOMPLETE
        if told[0] == b"message":
            token, _, number = told[2].partition(b" ")
            # A process that was paused reads an old message: its lease may be over.
            if word.endswith(token + b"\r\n") and monotonic() - since < self._terms.lease / 2:
                return int(number)
        return -1
