"""What the clock of a database shows in one schedule, and to whom: virtual time, and where the clock has jumped, later.

PostgreSQL's now() is when the transaction began, MariaDB's is when the command was sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lost_update_lab.model.commands import Op
from lost_update_lab.model.memoised_server import Who
from lost_update_lab.servers.deadlines import Deadlines, Ends


class ServerClock:
    """`decides`: some command asks for it (clock_words.py). If none does, nothing is noted. Times are in µs."""

    def __init__(self, decides: bool) -> None:
        self.decides = decides
        self.now = self.ahead = 0
        #: when the open transaction of a session began, and when the command was sent for which it waits
        self._began: Mapping[Who, int] = {}
        self._sent: Mapping[Who, int] = {}
        self._deadlines = Deadlines()

    @property
    def shows(self) -> int:
        return self.now + self.ahead

    def sends(self, who: Who, alone: bool = False) -> None:
        """`alone`: the transaction begins with this command."""
        if self.decides:
            self._sent = {**self._sent, who: self.shows}
        if self.decides and alone:
            self._began = {**self._began, who: self.shows}

    def has_answered(self, who: Who, inside: bool) -> None:
        """`inside`: the session is inside a transaction now."""
        if not self.decides:
            return
        began, _ = self.told(who)
        self._sent = _without(self._sent, who)
        self._began = {**self._began, who: began} if inside else _without(self._began, who)

    def told(self, who: Who) -> tuple[int, int]:
        """When its transaction began, and its command."""
        sent = self._sent.get(who, self.shows)
        return self._began.get(who, sent), sent

    def asked(self, op: Op, who: Who) -> Op:
        """The command together with all times that its answer may depend on."""
        if not op.timed:
            return op
        return replace(op, identity=op.identity + repr((self.shows, *self.told(who))).encode())

    def look(self, found: Ends) -> None:
        self._deadlines.look(found, self.shows)

    def leases(self) -> Mapping[str, int]:
        return self._deadlines.leases(self.shows, self.ahead) if self.decides else {}

    def over(self) -> bytes:
        return self._deadlines.over(self.shows) if self.decides else b""

    def advance(self, now: int) -> list[str]:
        return self._moved(now, self.ahead)

    def jump(self, ahead: int) -> list[str]:
        return self._moved(self.now, self.ahead + ahead)

    def _moved(self, now: int, ahead: int) -> list[str]:
        """Returns what is over now."""
        before = self.leases()
        self.now, self.ahead = now, ahead
        return sorted(before.keys() - self.leases().keys())

    def hidden(self) -> bytes:
        """What else belongs to a state."""
        if not (self.ahead or self._began or self._sent):
            return b""
        return repr((self.ahead, sorted(self._began.items()), sorted(self._sent.items()))).encode()

    def copy(self) -> ServerClock:
        twin = ServerClock(self.decides)
        vars(twin).update(vars(self))
        twin._deadlines = self._deadlines.copy()
        return twin


def _without(times: Mapping[Who, int], who: Who) -> Mapping[Who, int]:
    return {other: at for other, at in times.items() if other != who} if who in times else times
