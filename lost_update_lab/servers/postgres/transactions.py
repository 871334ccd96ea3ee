"""How the open transactions came to where they are: what PostgreSQL's answers depend on, besides what is committed."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from psycopg import IsolationLevel

from lost_update_lab.model.commands import ENDS, Op
from lost_update_lab.model.digest import digest
from lost_update_lab.model.memoised_server import Who
from lost_update_lab.servers import way
from lost_update_lab.servers.postgres.clock_words import without_clock

NOT_STRICT = (None, IsolationLevel.READ_COMMITTED)
#: what a session remembers beyond its transaction
_LASTING = re.compile(
    r"(?:^|;)\s*(?:SET\s+(?!LOCAL|TRANSACTION|CONSTRAINTS)|RESET|LISTEN|UNLISTEN|DISCARD|PREPARE|DEALLOCATE|DECLARE)\b"
    r"|set_config\s*\(",
    re.IGNORECASE,
)
_LASTING_INSIDE = re.compile(
    r"\bset_config\s*\(|\bpg_(?:try_)?advisory_(?:un)?lock|(?:;|\bBEGIN|\bTHEN|\bELSE|\bLOOP)\s*SET\s+(?!LOCAL)",
    re.IGNORECASE,
)
_TEMPORARY = re.compile(r"\b(?:CREATE|INTO)\s+(?:(?:LOCAL|GLOBAL)\s+)?TEMP(?:ORARY)?\b", re.IGNORECASE)
_CONTROLS = re.compile(r"(?:^|;)\s*(?:BEGIN|START\s+TRANSACTION|COMMIT|END|ROLLBACK|ABORT)\b", re.IGNORECASE)
_CHAINS = re.compile(r"\s*(?:COMMIT|END|ROLLBACK|ABORT)\b[^;]*\bAND\s+CHAIN\b", re.IGNORECASE)
#: the name of a function, or what could be one, and its bracket
CALL = re.compile(r"""(\b(?!(?:IN|AND|OR|VALUES|AS|ON|WHERE|CONFLICT)\b)\w+|")\s*\(""", re.IGNORECASE)
#: draws no number from a sequence, unless it calls a function
_UNCOUNTED = re.compile(r"\s*(?:SELECT|UPDATE|DELETE|COMMIT|ROLLBACK)\b", re.IGNORECASE)
#: a table, and what follows the first bracket
_INSERT = re.compile(r"""\s*INSERT\s+INTO\s+"?(\w+)"?\s*\((.*)""", re.IGNORECASE | re.DOTALL)
#: may block a command that only reads
_TABLES = re.compile(
    r"\s*(?:LOCK|TRUNCATE|ALTER|DROP|CREATE|VACUUM|REINDEX|CLUSTER|REFRESH|DO|CALL)\b", re.IGNORECASE
)


class PostgresWay(way.Way):
    """Under READ COMMITTED each command sees what is committed at that time. So of a transaction only what it wrote or
    locked matters, each with what it found; between transactions, only which waits for which, in which order. A command
    that only reads, or ends its own transaction, meets no other transaction. Under a stricter isolation (`strict`: a
    session has asked for one) every command matters, in the order of all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.strict = False

    def place(self, found: bytes, strict: bool) -> bytes | None:
        return super().place(found, strict or self.strict)

    def question(
        self,
        contents: bytes,
        who: Who,
        op: Op,
        isolation: IsolationLevel | None,
        strict: bool,
        counts: bool,
        drawn: bytes,
        *how: object,
    ) -> bytes | None:
        """What an answer to `op` depends on. `counts`: it draws a number. `drawn`: Draws.around this session. None:
        it is not known."""
        self.strict = self.strict or isolation not in NOT_STRICT
        place = self.place(contents, strict)
        if place is None or _TABLES.match(op.text):
            return None
        if not (strict or self.strict):
            own = self.inside.get(who)
            seen = b"" if changes_nothing(op) else contents
            met = (own,) if op.reads or op.text in ENDS else (sorted(self.inside.items()), self.line)
            place = digest(self.lasting, self.numbers if counts else b"", seen, drawn, repr(met).encode())
        return digest(place, repr((who, how)).encode(), op.identity)

    def went(
        self,
        contents: bytes,
        who: Who,
        op: Op,
        reply: bytes,
        failed: bool,
        inside: bool,
        counts: bool,
    ) -> None:
        """The session has executed `op` while `contents` were committed. `inside`: it is inside a transaction now. The
        number that a command has drawn (`counts`) may be seen only later."""
        if op.lasts:
            found = b"" if op.local else contents  # a cursor that is held, and not a setting
            self.lasting = digest(self.lasting, repr(who).encode(), op.identity, found)
        elif counts:
            self.numbers = digest(self.numbers, op.identity)
        self.known = self.known and not _TABLES.match(op.text)
        self._leaves_line(who)
        before = self.inside.get(who, b"")
        if op.local:
            before = digest(before, op.identity)
        elif not op.reads or failed:
            before = digest(before, contents, op.identity, reply, self.numbers if counts else b"")
        self._moved(contents, who, op.identity, before if inside else None)

    def waits(self, contents: bytes, who: Who, op: Op) -> None:
        """The session's command waits for another session. Outside a transaction it would be executed and committed
        whenever the other session lets it. That moment is not known."""
        self.known = self.known and who in self.inside
        self.line += (who,)
        self._moved(contents, who, b"waits", digest(self.inside.get(who, b""), contents, op.identity))

    def looks(self, contents: bytes, who: Who, op: Op, place: str) -> None:
        """The session's command stops: it has looked at these `contents`, or comes to this `place` in a function."""
        self._leaves_line(who)
        stop = f"stops {place}".encode()
        self._moved(contents, who, b"looks", digest(self.inside.get(who, b""), contents, op.identity, stop))

    def ended(self, contents: bytes, who: Who) -> None:
        """The session was ended from outside."""
        self._leaves_line(who)
        self._moved(contents, who, b"ended", None)


def changes_nothing(op: Op) -> bool:
    """Does it get the same answer whatever is committed, and leave that as it was?"""
    return op.local or op.text == "ROLLBACK"


@lru_cache(maxsize=1 << 14)
def lasts(text: str) -> bool:
    """Does the session remember it when its transaction is over?"""
    return bool(_LASTING.search(text)) or makes_temporary(text)


def lasts_inside(function: str) -> bool:
    """The same for what a function with this text does."""
    return bool(_LASTING_INSIDE.search(function)) or makes_temporary(function)


def makes_temporary(text: str) -> bool:
    """Does it make a temporary table? Its rows are the session's own."""
    return bool(_TEMPORARY.search(text))


def chains(text: str) -> bool:
    """Does it end a transaction and begin the next one?"""
    return bool(_CHAINS.match(text))


def controls(text: str) -> bool:
    """Does one of several statements begin or end a transaction?"""
    return ";" in text and bool(_CONTROLS.search(text))


def draws_number(text: str, counting: Collection[str]) -> bool:
    """Does this writing command draw a number from a sequence, as inserts into the tables `counting` do?"""
    statement = without_clock(text.partition(" ← ")[0])
    if insert := _INSERT.match(statement):
        return insert[1].lower() in counting or bool(CALL.search(insert[2]))
    return bool(CALL.search(statement)) or not _UNCOUNTED.match(statement)
