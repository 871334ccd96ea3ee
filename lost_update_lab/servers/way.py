"""How the open transactions of a database came to where they are: what PostgreSQL and MariaDB have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from lost_update_lab.model.digest import digest
from lost_update_lab.model.memoised_server import Who


class Way:
    """What the answers of a server depend on, besides what its tables hold."""

    def __init__(self) -> None:
        #: False once something happens of which too little is known, until no session is inside a transaction
        self.known = True
        #: what sessions remember, and how numbers were drawn
        self.lasting = self.numbers = b""
        #: for each session that is inside a transaction, holds a lock, or waits
        self.inside: Mapping[Who, bytes] = {}
        self.line: tuple[Who, ...] = ()
        self.order = b""

    def place(self, found: bytes, strict: bool) -> bytes | None:
        """All of this, as a digest. `found`: what the tables hold. `strict`: the order of all commands matters. None:
        it is not known."""
        if not self.known:
            return None
        remembered = digest(self.lasting, self.numbers)
        if strict:
            return digest(self.order or found, remembered, repr((sorted(self.inside), self.line)).encode())
        return digest(found, remembered, repr((sorted(self.inside.items()), self.line)).encode())

    def _leaves_line(self, who: Who) -> None:
        self.line = tuple(other for other in self.line if other != who)

    def _moved(self, found: bytes, who: Who, what: bytes, to: bytes | None) -> None:
        others = {other: way for other, way in self.inside.items() if other != who}
        self.inside = others if to is None else {**others, who: to}
        self.order = digest(self.order or found, repr(who).encode(), what) if self.inside else b""
        self.known = self.known or not self.inside

    def copy(self) -> Self:
        twin = type(self)()
        vars(twin).update(vars(self))
        return twin
