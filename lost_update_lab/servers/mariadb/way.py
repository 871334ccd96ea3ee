"""How the open transactions came to where they are: what MariaDB's answers depend on, besides what its tables hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from lost_update_lab.model.commands import ENDS, Op
from lost_update_lab.model.digest import digest
from lost_update_lab.model.memoised_server import Who
from lost_update_lab.servers import way
from lost_update_lab.servers.mariadb.literals import without_literals

#: what the session remembers beyond its transaction; whether each command commits is a part of its status
_LASTING = re.compile(
    r"(?:^|;)\s*(?:SET\s+(?!(?:SESSION\s+)?(?:@@)?AUTOCOMMIT\b)|PREPARE\b|DEALLOCATE\b"
    r"|(?:CREATE|DROP)\s+(?:OR\s+\w+\s+)?TEMPORARY\b)|:=|\bINTO\s+@|\bLAST_INSERT_ID\s*\(\s*[^\s)]",
    re.IGNORECASE,
)
#: what the session's last command, or its last number, answers
_OF_SESSION = re.compile(
    r"@|\b(?:LAST_INSERT_ID|ROW_COUNT|FOUND_ROWS|LASTVAL|PREVIOUS\s+VALUE|DIAGNOSTICS|EXECUTE)\b"
    r"|^\s*SHOW\s+(?:COUNT|WARNINGS|ERRORS|STATUS)\b",
    re.IGNORECASE,
)
#: … likewise in the text of a routine or a trigger, where SET may be of a variable of its own
_INSIDE = re.compile(
    r"@|\b(?:TEMPORARY|PREPARE|EXECUTE|LAST_INSERT_ID|LASTVAL)\b|\bSET\s+(?:SESSION|LOCAL)\b", re.IGNORECASE
)
_COMMENT = re.compile(r"/\*(?![!M]).*?\*/|(?:--\s|#)[^\n]*", re.DOTALL)
#: changes what the contents do not show, or is not the same twice
_UNSEEN = re.compile(
    r"\s*(?:(?:CREATE|DROP)\s+(?!(?:OR\s+\w+\s+)?TEMPORARY\b)|ALTER|TRUNCATE|RENAME|CALL|EXECUTE|LOCK|UNLOCK|FLUSH"
    r"|GRANT|SET\s+GLOBAL|ANALYZE|OPTIMIZE|CHECK|REPAIR)\b|.*\b(?:UUID|UUID_SHORT|RAND|RANDOM_BYTES|CONNECTION_ID|SYS_GUID)\s*\(",
    re.IGNORECASE | re.DOTALL,
)


class MariadbWay(way.Way):
    """Under READ COMMITTED a plain SELECT sees what is committed and what its own transaction wrote; a COMMIT depends
    on its own transaction, unless others wait: what it releases may commit by itself at once. Any other command may
    meet what every open transaction has locked. Under another isolation (`strict`: a session has one) each command
    matters, in the order of all of them: a snapshot begins with a SELECT. What the tables hold includes their gaps."""

    def __init__(self) -> None:
        super().__init__()
        #: all that a session was told
        self.past: Mapping[Who, bytes] = {}

    def question(self, found: bytes, who: Who, op: Op, strict: bool, *how: object) -> bytes | None:
        """What an answer to `op` depends on. None: it is not known."""
        place = self.place(found, strict)
        if place is None or unseen(op.text):
            return None
        if not strict and (op.reads or (op.text in ENDS and not self.line)):
            place = digest(self.lasting, b"" if op.local else found, self.inside.get(who, b""))
        past = self.past.get(who, b"") if op.lasts or _OF_SESSION.search(op.text) else b""
        return digest(place, past, repr((who, how)).encode(), op.identity)

    def went(self, found: bytes, who: Who, op: Op, reply: bytes, inside: bool, draws: bool) -> None:
        """The session has executed `op` when the tables held `found`, and was told `reply`. `inside`: it is inside a
        transaction now, or holds a name."""
        before = self.inside.get(who, b"")
        if op.local:
            before = digest(before, op.identity)
        elif not op.reads:
            before = digest(before, self._met(found, who), op.identity, reply)
        if op.lasts or lasts_beyond(op.text):
            self.lasting = digest(
                self.lasting, repr(who).encode(), op.identity, b"" if op.local else found, reply
            )
        if draws:
            self.numbers = digest(self.numbers, op.identity)
        self.known = self.known and not unseen(op.text)
        self.past = {**self.past, who: digest(self.past.get(who, b""), op.identity, reply)}
        self._leaves_line(who)
        self._moved(found, who, digest(op.identity, reply), before if inside else None)

    def waits(self, found: bytes, who: Who, op: Op, draws: bool) -> None:
        """Its command waits for another session. A number that it has drawn is gone, whatever comes."""
        if draws:
            self.numbers = digest(self.numbers, op.identity)
        before = digest(self.inside.get(who, b""), self._met(found, who), op.identity, b"waits")
        self.line += (who,)
        self._moved(found, who, digest(b"waits", op.identity), before)

    def looks(self, found: bytes, who: Who, op: Op) -> None:
        """Its command has looked, and has locked nothing yet."""
        before = digest(self.inside.get(who, b""), self._met(found, who), op.identity, b"looks")
        self._moved(found, who, digest(b"looks", op.identity), before)

    def late(self, found: bytes, who: Who) -> None:
        """The time that its command may wait is over."""
        self._moved(found, who, b"late", digest(self.inside.get(who, b""), b"late"))

    def ended(self, found: bytes, who: Who) -> None:
        """The session was ended from outside."""
        if who in self.inside:
            self._leaves_line(who)
            self._moved(found, who, b"ended", None)

    def _met(self, found: bytes, who: Who) -> bytes:
        others = sorted((other, met) for other, met in self.inside.items() if other != who)
        return digest(found, self.numbers, repr((others, self.line)).encode())


@lru_cache(maxsize=1 << 14)
def lasts_beyond(text: str) -> bool:
    """Does the session remember it when its transaction is over?"""
    return bool(_LASTING.search(_COMMENT.sub(" ", without_literals(text))))


@lru_cache(maxsize=1 << 14)
def remembers(text: str) -> bool:
    """… or does it answer what the session remembers? Then the session has to begin anew for the next schedule."""
    return lasts_beyond(text) or bool(_OF_SESSION.search(without_literals(text)))


@lru_cache(maxsize=1 << 12)
def remembers_inside(routine: str) -> bool:
    """The same of the text of a routine, a trigger or a view."""
    return bool(_INSIDE.search(without_literals(routine)))


@lru_cache(maxsize=1 << 14)
def unseen(text: str) -> bool:
    return bool(_UNSEEN.match(text))
