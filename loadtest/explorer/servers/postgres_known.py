"""PostgreSQL as it is known: the same command, in the same session, is answered in the same way, where the same is
committed and the sessions that are inside of a transaction have come there by the same commands in the same order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from psycopg import IsolationLevel
from psycopg.pq import TransactionStatus

from loadtest.explorer.ops import Op
from loadtest.explorer.playing import Unanswered
from loadtest.explorer.servers.known import Known, Who
from loadtest.explorer.tasks import digest

#: what a session remembers beyond its transaction
_LASTING = re.compile(
    r"\s*(?:SET\s+(?!LOCAL|TRANSACTION|CONSTRAINTS)|RESET|LISTEN|UNLISTEN|DISCARD|PREPARE|DEALLOCATE|DO|CREATE|DECLARE)\b"
    r"|set_config\s*\(",
    re.IGNORECASE,
)
#: certainly takes no number from a sequence
_UNCOUNTED = re.compile(r"\s*(?:UPDATE|DELETE|COMMIT|ROLLBACK)\b(?!.*\()", re.IGNORECASE | re.DOTALL)


class Answer(NamedTuple):
    """`reply`, `shown`: as the worker was told it; `error`: what its class is called, if it is one. What is committed
    afterwards, and how the session stands then."""

    reply: bytes
    shown: str
    error: str
    contents: bytes
    touched: bool
    session: Session


class Session(NamedTuple):
    status: int = TransactionStatus.IDLE
    wrote: bool = False
    calls: bool = False
    holds: bool = False
    isolation: IsolationLevel | None = None
    cut: bool = False

    @property
    def inside(self) -> bool:
        """Does it hold anything that others could meet?"""
        return not self.cut and (self.status != TransactionStatus.IDLE or self.holds)


class Way:
    """How the open transactions came to where they are, as a digest."""

    def __init__(self) -> None:
        #: b"": nobody is inside, what is committed says all. None: somebody waited for somebody; it is not known
        self.chain: bytes | None = b""
        #: what sessions remember, and how many numbers were drawn from sequences
        self.lasting = b""
        self.inside: frozenset[Who] = frozenset()

    def question(self, contents: bytes, who: Who, op: Op, *how: object) -> bytes | None:
        """What an answer to `op` depends on. None: it is not known."""
        if self.chain is None:
            return None
        return digest(self.chain or contents, self.lasting, repr((who, how)).encode(), op.identity)

    def went(self, question: bytes | None, who: Who, op: Op, inside: bool) -> None:
        """The session has executed it, and is inside of a transaction now, or not."""
        if _LASTING.search(op.text) or not (op.reads or _UNCOUNTED.match(op.text)):
            self.lasting = digest(self.lasting, op.identity if _LASTING.search(op.text) else b"a number")
        self._moved(question, who, inside)

    def ended(self, who: Who) -> None:
        """The session was brought to its end from outside."""
        self._moved(digest(self.chain, repr(who).encode()) if self.chain else self.chain, who, False)

    def _moved(self, chain: bytes | None, who: Who, inside: bool) -> None:
        self.inside = self.inside | {who} if inside else self.inside - {who}
        self.chain = chain if self.inside else b""

    def copy(self) -> Way:
        twin = Way()
        twin.chain, twin.lasting, twin.inside = self.chain, self.lasting, self.inside
        return twin


class Answers:
    """What the server has answered. `strict`: somebody has asked for another isolation than the usual one."""

    def __init__(self) -> None:
        self.known: dict[bytes, Answer] = {}
        self.strict = False


class KnownPostgres(Known):
    """`contents`: of the opening."""

    def __init__(self, name: str, answers: Answers, contents: bytes) -> None:
        super().__init__(contents, {})
        self.name, self.answers = name, answers
        self.way = Way()

    def copy(self) -> KnownPostgres:
        twin = super().copy()
        twin.way = self.way.copy()
        return twin

    def session(self, who: Who) -> Session:
        found: Session = self.sessions.get(who, Session())
        return found

    def uses(self, who: Who, isolation: IsolationLevel | None) -> None:
        """A worker's command for this session stands at its gate."""
        self.sessions[who] = self.session(who)._replace(isolation=isolation)

    def before_step(self, op: Op) -> None:
        self.answers.strict |= asks_for_more(op)

    def answer(self, who: Who, op: Op, *how: object) -> Answer:
        """Execute it. Raises Unanswered."""
        before = self.session(who)
        asked = self.way.question(self.seen, who, op, before.isolation, before.cut, *how)
        if asked is None or (answer := self.answers.known.get(asked)) is None:
            raise Unanswered
        self.sessions[who] = answer.session
        self.way.went(asked, who, op, answer.session.inside)
        self.changed |= not op.reads
        self.seen = answer.contents
        if answer.touched:
            self.touched()
        return answer

    def end_sessions(self, sessions: Sequence[Who], cut: bool = False) -> None:
        for who in sessions:
            session = self.session(who)
            if session.cut or not session.inside:
                continue
            self.sessions[who] = session._replace(status=TransactionStatus.IDLE, calls=False, holds=False)
            self.way.ended(who)

    def cut(self, who: Who) -> None:
        """Its client finds the connection closed."""
        self.sessions[who] = self.session(who)._replace(cut=True)

    def undisturbed(self, op: Op, own: Sequence[Who], others: Sequence[Who]) -> bool:
        if self.answers.strict or any(self.session(s).isolation not in USUAL for s in (*own, *others)):
            return False
        return op.reads or op.text in ENDS or not any(self._wrote(who) for who in others)

    def _wrote(self, who: Who) -> bool:
        session = self.session(who)
        return session.wrote or session.holds

    def holds(self, sessions: Sequence[Who]) -> bool:
        return any(self.session(who).inside for who in sessions)


USUAL = (None, IsolationLevel.READ_COMMITTED)
ENDS = frozenset({"COMMIT", "ROLLBACK"})


def asks_for_more(op: Op) -> bool:
    return "ISOLATION" in op.text.upper() or "SERIALIZABLE" in op.text.upper()
