"""Memoised PostgreSQL. A command in a session gets the same answer if the same is committed, and if the sessions that
are inside a transaction came there by the same commands in the same order."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import NamedTuple

from psycopg import IsolationLevel
from psycopg.pq import TransactionStatus
from psycopg.pq.abc import PGresult

from lost_update_lab.model.commands import ENDS, Op
from lost_update_lab.model.errors import Unanswered
from lost_update_lab.model.memoised_server import MemoisedServer, Who
from lost_update_lab.model.workers import Task
from lost_update_lab.servers.clock import ServerClock
from lost_update_lab.servers.compound import names_one
from lost_update_lab.servers.deadlines import Ends
from lost_update_lab.servers.draws import ANY_TABLE, Draws, drawn_by
from lost_update_lab.servers.postgres.overlaps import Overlaps
from lost_update_lab.servers.postgres.transactions import (
    NOT_STRICT,
    PostgresWay,
    changes_nothing,
    draws_number,
)

#: SQLAlchemy asks for the level at its first connection
_NOT_STRICTER = re.compile(
    r"\s*(?:SHOW\b|(?:BEGIN|SET)\b[\s\w]*\bISOLATION\s+LEVEL\s+READ\s+(?:UN)?COMMITTED\s*$)", re.IGNORECASE
)


class PostgresAnswer(NamedTuple):
    """`reply`, `shown`: as the worker was told it. `error`: the name of its class, if it is one. Also what is committed
    afterwards, and the state of the session then."""

    reply: bytes
    shown: str
    error: str
    contents: bytes
    everything: bytes
    touched: bool
    session: PostgresSession


class Looked(NamedTuple):
    """The command stops (looks.py). `place`: where in a function. "": it has its snapshot, and no row is locked yet."""

    place: str


class PostgresSession(NamedTuple):
    status: int = TransactionStatus.IDLE
    wrote: bool = False
    holds: bool = False
    isolation: IsolationLevel | None = None
    cut: bool = False
    #: its command stands in PostgreSQL's queue
    waits: bool = False
    #: its open transaction has locked something
    keeps: bool = False

    @property
    def transaction(self) -> bool:
        """Is it inside of one? A connection that is closed is not, whatever its status."""
        return self.status not in (TransactionStatus.IDLE, TransactionStatus.UNKNOWN)

    @property
    def inside(self) -> bool:
        """Does it hold anything that others could meet?"""
        return not self.cut and (self.waits or self.status != TransactionStatus.IDLE or self.holds)


class PostgresAnswers:
    """What the server has answered; None: the command waits for another session. `free`: the waiting sessions that the
    last command has released. `circle`: those that wait for each other. `strict`: a session has asked for more than the
    usual isolation."""

    def __init__(self) -> None:
        self.known: dict[bytes, PostgresAnswer | Looked | None] = {}
        self.free: dict[bytes, tuple[Who, ...]] = {}
        self.circle: dict[bytes, tuple[Who, ...]] = {}
        self.strict = self.serializable = False
        #: (command, what its worker was told) → what the server sent (gates/postgres/fed.py)
        self.results: dict[tuple[bytes, Hashable], Sequence[PGresult]] = {}
        #: everything that was committed → the times in its rows that may be yet to come
        self.ends: dict[bytes, Ends] = {}
        #: the tables into which an insert draws a number
        self.counting: Collection[str] | None = None
        #: functions, and tables whose rows write to others
        self.beside: Collection[str] = ()
        self._draws_number: dict[str, bool] = {}
        self._draws_for: dict[str, str | None] = {}
        #: nothing is known any more: a command wrote something that no look shows
        self.closed = False

    def counts(self, op: Op) -> bool:
        """Does it draw a number?"""
        if op.text not in self._draws_number:
            self._draws_number[op.text] = not op.reads and draws_number(op.text, self.counting or ())
        return self._draws_number[op.text]

    def draws_for(self, op: Op) -> str | None:
        """The table for which it draws places or numbers, as draws.drawn_by says."""
        if op.reads:
            return None
        if op.text not in self._draws_for:
            statement = op.text.partition(" ← ")[0]
            found = ANY_TABLE if names_one(statement, self.beside) else drawn_by(statement)
            self._draws_for[op.text] = found
        return self._draws_for[op.text]

    def hears(self, op: Op) -> None:
        """This command is sent. Does it ask for more than the usual isolation?"""
        if _NOT_STRICTER.match(op.text):
            return
        asked = op.text.upper()
        self.serializable |= "SERIALIZABLE" in asked
        self.strict |= "ISOLATION" in asked or self.serializable

    def overlaps(self, isolation: IsolationLevel | None) -> bool:
        """Does the order of the commands of open transactions count, this session's too?"""
        return self.serializable or isolation is IsolationLevel.SERIALIZABLE

    def sees_all(self, isolation: IsolationLevel | None) -> bool:
        """Does each command of a session with this isolation depend on what its transaction has seen before?"""
        return self.strict or isolation not in NOT_STRICT

    def close(self) -> None:
        self.closed = True
        self.forget()

    def forget(self) -> None:
        """From now on the server answers otherwise: it stops where it did not."""
        for known in (self.known, self.free, self.circle):
            known.clear()


class MemoisedPostgres(MemoisedServer):
    """`contents`: those of the opening state."""

    def __init__(
        self, name: str, answers: PostgresAnswers, contents: bytes, everything: bytes, clock: ServerClock
    ) -> None:
        super().__init__(contents, everything)
        self.name, self.answers, self.clock, self.timed = name, answers, clock.copy(), clock.decides
        self.way, self.draws, self.overlaps = PostgresWay(), Draws(), Overlaps()
        self._settled: bytes | None = None  # the place at which the free sessions were last asked for

    def copy(self) -> MemoisedPostgres:
        twin = super().copy()
        twin.way, twin.clock = self.way.copy(), self.clock.copy()
        twin.draws, twin.overlaps = self.draws.copy(), self.overlaps.copy()
        return twin

    def contents(self) -> bytes:
        return self.clock.over() + self.seen

    def leases(self) -> Mapping[str, int]:
        return self.clock.leases()

    def advance(self, now: int) -> list[str]:
        return self.clock.advance(now)

    def jump(self, ahead: int) -> str:
        return ", ".join(self.clock.jump(ahead)) or "nothing"

    def hidden(self) -> bytes:
        return self.clock.hidden() + self.draws.hidden() + self.overlaps.hidden()

    def session(self, who: Who) -> PostgresSession:
        found: PostgresSession = self.sessions.get(who, PostgresSession())
        return found

    def uses(self, who: Who, isolation: IsolationLevel | None) -> None:
        """A worker's command for this session stands at its gate."""
        self.sessions[who] = self.session(who)._replace(isolation=isolation)

    def before_step(self, op: Op) -> None:
        self.answers.hears(op)

    def answer(self, who: Who, op: Op, begins: bool, tells: bool) -> PostgresAnswer | Looked | None:
        """Execute the command; or, if it has waited, hear its answer. None: it waits. Raises Unanswered."""
        before = self.session(who)
        how = (POSTGRES_GOES_ON, tells) if before.waits else (before.isolation, before.cut, begins, tells)
        if not before.waits:
            self.clock.sends(who, op.alone)
        sent, op = op, self.clock.asked(op, who)
        counts, strict = self.answers.counts(op), self.answers.strict
        drawn = self.draws.around(who)
        asked = self.way.question(self.everything, who, op, before.isolation, strict, counts, drawn, *how)
        if asked is None or asked not in self.answers.known:
            raise Unanswered
        answer = self.answers.known[asked]
        if self.answers.overlaps(before.isolation):
            inside = not isinstance(answer, PostgresAnswer) or answer.session.transaction
            self.overlaps.ran(who, op, inside)
        if not isinstance(answer, PostgresAnswer):
            self.sessions[who] = before._replace(waits=True)
            self.draws.drew(who, self.answers.draws_for(sent), sent.identity)
            if answer is None:
                self.way.waits(self.everything, who, op)
            else:
                self.way.looks(self.everything, who, op, answer.place)
            return answer
        self.sessions[who] = answer.session
        self.clock.has_answered(who, answer.session.transaction)
        self.draws.drew(who, self.answers.draws_for(sent), sent.identity)
        if not answer.session.transaction:
            self.draws.ended(who, by=op.text)
        told, failed = answer.shown.encode() if answer.error else answer.reply, bool(answer.error)
        self.way.went(self.everything, who, op, told, failed, answer.session.inside, counts)
        self.changed |= not op.reads
        if not changes_nothing(op):
            self.seen, self.everything = answer.contents, answer.everything
            self.clock.look(self.answers.ends.get(self.everything, ()))
        if answer.touched:
            self.touched()
        return answer

    def freed(self, waiting: Sequence[Task]) -> list[Task]:
        place = self.way.place(self.everything, self.answers.strict)
        if place == self._settled:
            return []
        self._settled = place
        return self._those(self.answers.free, waiting)

    def deadlocked(self, waiting: Sequence[Task]) -> list[Task]:
        return self._those(self.answers.circle, waiting) if waiting else []

    def _those(self, known: Mapping[bytes, tuple[Who, ...]], waiting: Sequence[Task]) -> list[Task]:
        found = known.get(self.way.place(self.everything, self.answers.strict) or b"")
        if found is None:
            raise Unanswered
        by = {task.session: task for task in waiting}
        return [by[who] for who in found]

    def abort(self, task: Task) -> None:
        raise Unanswered

    def end_sessions(self, sessions: Sequence[Who], cut: bool = False) -> None:
        for who in sessions:
            session = self.session(who)
            if session.cut or not session.inside:
                continue
            self.sessions[who] = session._replace(
                status=TransactionStatus.IDLE, holds=False, waits=False, keeps=False
            )
            self.clock.has_answered(who, inside=False)
            self.draws.ended(who)
            self.overlaps.ended(who)
            self.way.ended(self.everything, who)

    def cut(self, who: Who) -> None:
        """The session's client finds the connection closed."""
        self.sessions[who] = self.session(who)._replace(cut=True)

    def commits(self, task: Task) -> bool:
        """One that waits in memory is inside of a transaction, if only in its own. Raises Unanswered."""
        if task.op and task.op.alone:
            raise Unanswered
        return False

    def undisturbed(self, op: Op, own: Sequence[Who], others: Sequence[Who]) -> bool:
        if self.answers.strict or any(self.session(s).isolation not in NOT_STRICT for s in (*own, *others)):
            return False
        return op.reads or op.text in ENDS or not any(self._wrote(who) for who in others)

    def _wrote(self, who: Who) -> bool:
        session = self.session(who)
        return session.wrote or session.holds

    def holds(self, sessions: Sequence[Who]) -> bool:
        return any(self.session(who).inside for who in sessions)

    def keeps_rows(self, sessions: Sequence[Who]) -> bool:
        return any(self.session(who).keeps for who in sessions)

    def keeps_out(self, sessions: Sequence[Who]) -> bool:
        return any(self.session(who).holds for who in sessions)


#: distinguishes the answer to a command that has waited from the command itself
POSTGRES_GOES_ON = "goes on"
