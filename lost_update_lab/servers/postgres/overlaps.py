"""The order in which SERIALIZABLE transactions that overlap have read, and made rows. The tables do not show it.

    A: SELECT … WHERE id = 10    notes its page of the index       B: INSERT … (21)
    B: INSERT … (21)             into that page: A depends on B    A: SELECT … WHERE id = 10     meets no 21

PostgreSQL notes pages of an index, and not keys. So on the left A has read what B changed, and on the right it has not.
With a second such note A, or another one, is failed later, though nobody has touched its rows. The notes stay until no
transaction is open. Of rows it notes each: whether A reads one before or after B updates it, A depends on B.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Self

from lost_update_lab.model.commands import Op
from lost_update_lab.model.digest import digest
from lost_update_lab.model.memoised_server import Who

_MAKES_A_ROW = re.compile(r"\b(?:INSERT|MERGE|CALL|EXECUTE)\b", re.IGNORECASE)


class Overlaps:
    """For each session, as digests: its last command, and the last one that may have made a row. Each contains what
    came before it and could make a difference to it, so two orders that cannot be told apart are the same."""

    def __init__(self) -> None:
        self._last: Mapping[Who, tuple[bytes, bytes]] = {}
        self._open: frozenset[Who] = frozenset()

    def ran(self, who: Who, op: Op, inside: bool) -> None:
        """The session has executed this, or waits in it. `inside`: its transaction is open."""
        if not op.local:
            self._ran(who, op.identity, inside, bool(_MAKES_A_ROW.search(op.text)))

    def ended(self, who: Who) -> None:
        """The session was ended from outside."""
        if who in self._open:
            self._ran(who, b"ended", inside=False, makes=False)

    def _ran(self, who: Who, what: bytes, inside: bool, makes: bool) -> None:
        mine, made = self._last.get(who, (b"", b""))
        others = [of[0] if makes else of[1] for other, of in self._last.items() if other != who]
        last = digest(mine, what, *sorted(others))
        self._open = self._open | {who} if inside else self._open - {who}
        self._last = {**self._last, who: (last, last if makes else made)} if self._open else {}

    def copy(self) -> Self:
        twin = type(self)()
        vars(twin).update(vars(self))
        return twin

    def hidden(self) -> bytes:
        """As a part of the state. One session's order is its own, and where no row was made none counts."""
        counts = len(self._last) > 1 and any(made for _, made in self._last.values())
        return repr(sorted(self._last.items())).encode() if counts else b""
