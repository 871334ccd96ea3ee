"""Memoised MariaDB. A command in a session gets the same answer if the tables hold the same, gaps included, and if the
sessions that are inside a transaction came there by the same commands in the same order (way.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from lost_update_lab.model.commands import ENDS, Op
from lost_update_lab.model.digest import digest
from lost_update_lab.model.errors import Unanswered
from lost_update_lab.model.memoised_server import MemoisedServer, Who
from lost_update_lab.model.workers import Task
from lost_update_lab.servers.clock import ServerClock
from lost_update_lab.servers.deadlines import Ends
from lost_update_lab.servers.mariadb.way import MariadbWay

#: distinguishes the answer to a command that has waited from the command itself
MARIADB_GOES_ON = "goes on"


class Wait(NamedTuple):
    """`kind`: what is waited for, "rows" or a "name". `seconds`: how long; None: for ever. `limit`: what ends it then.
    `in_vain`: then it will do something else."""

    kind: str
    seconds: float | None
    limit: str
    in_vain: bool


#: its command has looked at rows, and has locked none (looks.py)
LOOKS = Wait("looks", None, "", in_vain=False)


class Status(NamedTuple):
    """Of a session. `commits`: each of its commands does so by itself. `holds`: how it came to hold what outlasts its
    transactions. `cut`: its client finds the connection closed. `waits`: for what, if it does; `late`: what ends it.
    `keeps`: it has the lock of a name; `locked`: its open transaction has locked rows."""

    inside: bool = False
    commits: bool = True
    holds: bytes = b""
    cut: bool = False
    waits: Wait | None = None
    late: str = ""
    keeps: bool = False
    locked: bool = False

    @property
    def matters(self) -> bool:
        """Does it hold anything that others could meet?"""
        return not self.cut and bool(self.waits or self.inside or self.holds)


@lru_cache(maxsize=1 << 14)
def _found(everything: bytes, ever: frozenset[str]) -> bytes:
    return digest(everything, *(line.encode() for line in sorted(ever)))


class HeldInTables(NamedTuple):
    """What the tables hold: the part that makes a state; all columns; the rows that ever existed; times to come."""

    contents: bytes
    everything: bytes
    ever: frozenset[str]
    ends: Ends = ()

    @property
    def found(self) -> bytes:
        """All that an answer may depend on. Gap locks begin and end at rows that are gone, too."""
        return _found(self.everything, self.ever)


class MariadbAnswer(NamedTuple):
    """`reply`, `shown`: as the worker was told it. What the tables hold, and the status of the session, then. `held`:
    None where the answer does not depend on it."""

    reply: bytes
    shown: str
    failed: bool
    held: HeldInTables | None
    touched: bool
    status: Status


class MariadbAnswers:
    """What the server has answered; a Wait: for another session. `free`: the waiting sessions whose commands are
    answered. `strict`: a session has another isolation than READ COMMITTED. `meets`: one sees what is not committed.
    `weak`: one has READ COMMITTED, or less."""

    def __init__(self) -> None:
        self.known: dict[bytes, MariadbAnswer | Wait] = {}
        self.free: dict[bytes, tuple[Who, ...]] = {}
        self.strict = self.meets = self.weak = False


class KeptOfSchedule:
    """What the real server and the memoised one keep of a schedule."""

    answers: MariadbAnswers
    way: MariadbWay
    clock: ServerClock

    def begin_kept(self, timed: bool) -> None:
        self.way, self.clock = MariadbWay(), ServerClock(timed)
        #: what sessions hold beyond their transactions, by how they came to hold it
        self.held_by: Mapping[Who, bytes] = {}

    @property
    def held(self) -> HeldInTables:
        raise NotImplementedError

    def question(self, who: Who, op: Op, status: Status, *how: object) -> tuple[bytes | None, Op]:
        """What the answer depends on (None: it is not known), and the command with the times that count for it."""
        if not status.waits:
            self.clock.sends(who)
        op = self.clock.asked(op, who)
        of = status.commits, status.cut, status.late, *how
        return self.way.question(self.held.found, who, op, self.answers.strict, *of), op

    def went(self, who: Who, op: Op, found: bytes, reply: bytes, inside: bool, draws: bool) -> None:
        self.clock.has_answered(who, inside=False)  # NOW() is when the command was sent
        self.way.went(found, who, op, reply, inside, draws)

    def note(self, who: Who, holds: bytes) -> None:
        """A command has ended that may have taken a lock beyond its transaction, or released it."""
        self.held_by = {other: by for other, by in {**self.held_by, who: holds}.items() if by}

    def has_ended(self, who: Who) -> None:
        self.held_by = {other: by for other, by in self.held_by.items() if other != who}
        self.way.ended(self.held.found, who)
        self.clock.has_answered(who, inside=False)

    def contents(self) -> bytes:
        self._look_for_ends()
        return self.clock.over() + self.held.contents

    def leases(self) -> Mapping[str, int]:
        self._look_for_ends()
        return self.clock.leases()

    def _look_for_ends(self) -> None:
        if self.clock.decides:
            self.clock.look(self.held.ends)

    def advance(self, now: int) -> list[str]:
        return self.clock.advance(now)

    def jump(self, ahead: int) -> str:
        return ", ".join(self.clock.jump(ahead)) or "nothing"

    def traces(self) -> bytes:
        return self.held.everything

    def hidden(self) -> bytes:
        """What else belongs to a state: rows that existed and are gone, the number that is drawn next, what is held
        beyond transactions, what the clock shows to whom."""
        held, clock = self.held, self.clock.hidden()
        gone = len(held.ever) != held.contents.count(b"\n")
        if not (gone or self.way.numbers or self.held_by or clock):
            return b""
        by = repr(sorted(self.held_by.items())).encode()
        return digest(repr(sorted(held.ever)).encode() if gone else b"", self.way.numbers, by, clock)


class MemoisedMariaDB(KeptOfSchedule, MemoisedServer):
    """`held`: in the opening state. `draws`: does a command draw a number?"""

    def __init__(
        self,
        name: str,
        answers: MariadbAnswers,
        held: HeldInTables,
        clock: ServerClock,
        draws: Callable[[Op], bool],
    ) -> None:
        super().__init__(held.contents, held.everything)
        self.begin_kept(clock.decides)
        self.name, self.answers, self.clock, self._held, self.draws = name, answers, clock.copy(), held, draws
        self.timed = clock.decides

    def copy(self) -> MemoisedMariaDB:
        twin = super().copy()
        twin.way, twin.clock = self.way.copy(), self.clock.copy()
        return twin

    @property
    def held(self) -> HeldInTables:
        return self._held

    def before_step(self, op: Op) -> None:
        look_at_isolation(self.answers, op)

    def session(self, who: Who) -> Status:
        found: Status = self.sessions.get(who, Status())
        return found

    def uses(self, who: Who, commits: bool) -> None:
        """A worker's command for this session stands at its gate. `commits`: as the session was when it was made."""
        self.sessions.setdefault(who, Status(commits=commits))

    def holds_now(self, who: Who, holds: bytes) -> None:
        """A command begins, or has ended, that may have taken a lock beyond its transaction."""
        self.sessions[who] = self.session(who)._replace(holds=holds)
        self.note(who, holds)

    def answer(self, who: Who, op: Op) -> MariadbAnswer | Wait:
        """Execute the command; or, if it has waited, hear its answer. Raises Unanswered."""
        before, found = self.session(who), self._held.found
        asked, timed = self.question(who, op, before, *((MARIADB_GOES_ON,) if before.waits else ()))
        answer = self.answers.known.get(asked) if asked else None
        if answer is None:
            raise Unanswered
        if isinstance(answer, Wait):
            self.sessions[who] = before._replace(waits=answer)
            if answer == LOOKS:
                self.way.looks(found, who, timed)
                return answer
            self.way.waits(found, who, timed, self.draws(op))
            return answer
        self.sessions[who] = status = answer.status
        self.went(who, timed, found, answer.reply, bool(status.inside or status.holds), self.draws(op))
        self.changed |= not op.reads
        if answer.held is not None:
            self._held = answer.held
            self._look_for_ends()
        if answer.touched:
            self.touched()
        return answer

    def too_late(self, who: Who) -> None:
        """The time that its command may wait is over."""
        waits = self.session(who).waits
        self.sessions[who] = self.session(who)._replace(late=waits.limit if waits else "")
        self.way.late(self._held.found, who)

    def freed(self, waiting: Sequence[Task]) -> list[Task]:
        place = self.way.place(self._held.found, self.answers.strict)
        found = self.answers.free.get(place) if place else None
        if found is None:
            raise Unanswered
        by = {task.session: task for task in waiting}
        return [by[who] for who in found]

    def commits(self, task: Task) -> bool:
        """What follows is not known here. Raises Unanswered."""
        status = self.session(task.session)
        if (task.op and task.op.alone) or (status.commits and not status.inside):
            raise Unanswered
        return False

    def end_sessions(self, sessions: Sequence[Who], cut: bool = False) -> None:
        for who in sessions:
            self.has_ended(who)
            if self.session(who).matters:
                self.sessions[who] = Status(commits=self.session(who).commits)

    def cut(self, who: Who) -> None:
        """The session's client finds the connection closed."""
        self.sessions[who] = self.session(who)._replace(cut=True)

    def undisturbed(self, op: Op, own: Sequence[Who], others: Sequence[Who]) -> bool:
        return undisturbed(self.answers, op, self.holds(others))

    def holds(self, sessions: Sequence[Who]) -> bool:
        return any(self.session(who).inside or self.session(who).holds for who in sessions)

    def keeps_rows(self, sessions: Sequence[Who]) -> bool:
        return any(self.session(who).locked for who in sessions)

    def keeps_out(self, sessions: Sequence[Who]) -> bool:
        return any(self.session(who).keeps for who in sessions)


def undisturbed(answers: MariadbAnswers, op: Op, others_hold: bool) -> bool:
    """A plain SELECT reads what is committed, whenever the snapshot of its transaction was taken."""
    return (op.reads and not answers.meets) or op.text in ENDS or not others_hold


def look_at_isolation(answers: MariadbAnswers, op: Op) -> None:
    text = op.text.upper()
    if text.lstrip().startswith(("SELECT", "SHOW")):  # it only asks for the level
        return
    if "ISOLATION" in text or "SNAPSHOT" in text:
        answers.strict |= "READ COMMITTED" not in text and "READ-COMMITTED" not in text
        answers.meets |= "SERIALIZABLE" in text or "UNCOMMITTED" in text
        answers.weak |= "COMMITTED" in text
