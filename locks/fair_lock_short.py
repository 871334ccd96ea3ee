"""fair-lock's short way: acquire and release when nobody else is about, and the connection is a plain one.

Between two switches of the process the caches are cold, and each step of Python costs ten times what it costs in
a loop of its own. So here stands in two methods, without a call that can be spared, what FairLock, Home and the
wire do step by step. Whatever is not as usual goes the long way, with what was sent and what was read so far.

Both ways send the same two commands. The contract's cases go this way (tests/contract); the explorer holds commands
back at redis-py's methods, so it goes the long one.
"""

from __future__ import annotations

from abc import abstractmethod
from time import monotonic
from typing import Any

from redis.connection import AbstractConnection

from locks.base import Lock
from locks.direct_wire import ENOUGH, INCOMPLETE, SEND
from locks.fair_lock_attempt import Calls
from locks.fair_lock_grant import Grant, Grants, Terms, here
from locks.fair_lock_home import Begun, Home
from locks.wire import Wire

_class: Any = AbstractConnection


class ShortWay(Lock):
    """`acquire` and `release` of FairLock. The methods with an underscore are the long way."""

    _home: Home
    _calls: Calls
    _delete: bytes  # packed but for the token
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
        home, grants = self._home, self._grants
        client = home.client
        if timeout is not None or grants or home.abandoned or _class.send_packed_command is not SEND:
            return self._acquire(timeout)
        try:
            wire: Any = client.idle.pop()
        except IndexError:
            return self._acquire(None)
        try:
            question, word = wire.ready[self._calls].pop()
        except LookupError:
            client.idle.append(wire)
            return self._acquire(None)
        try:
            since = monotonic()  # the lease counts from before the question
            try:
                wire.send(question)
                wire.feed(wire.receive(ENOUGH))
                number = wire.gets()
            except OSError:
                number = INCOMPLETE
            if type(number) is int and number > 0:
                thread = here.thread
                grants[thread] = Grant((word, number, since, self._terms, thread))
                if not grants.watched:
                    client.renewal.watch(grants)
                client.idle.append(wire)
                return True
        except BaseException:
            grants.pop(here.thread, None)
            home.give_up(wire, word, ask=True)
            client.give_back(wire)
            raise
        return self._acquire(None, (wire, word, since, number))

    def release(self) -> None:
        """Raises LockNotHeld without a holding, LockLost when the lock was lost before the release."""
        grants = self._grants
        grant = grants.get(here.thread)
        if grant is None or not grant.usual:
            return self._release()
        client = self._home.client
        try:
            wire: Any = client.idle.pop()
        except IndexError:
            return self._release()
        del grants[grant[4]]
        try:
            try:
                wire.send(self._delete + grant[0])
            except OSError:  # it was not sent, so there is no doubt what became of it
                client.give_back(wire)
                return self._give_back(grant)
            try:
                wire.feed(wire.receive(ENOUGH))
                reply = wire.gets()
            except OSError:
                reply = INCOMPLETE
            if reply == 1:
                client.idle.append(wire)
                return None
        except BaseException:
            self._home.give_up(wire, grant.word, ask=False)
            client.give_back(wire)
            raise
        return self._give_back(grant, (wire, reply))
