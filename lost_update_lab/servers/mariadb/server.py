"""MariaDB as the scheduler sees it: what is committed, which command is blocked, how sessions end."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from lost_update_lab.model.bounds import SECOND
from lost_update_lab.model.commands import ENDS, Op
from lost_update_lab.model.epoch import Epoch
from lost_update_lab.model.errors import Broken
from lost_update_lab.model.server import NEWS_WITHIN_MS
from lost_update_lab.model.server_defaults import Plain
from lost_update_lab.model.workers import Task
from lost_update_lab.servers.compound import Compound
from lost_update_lab.servers.mariadb import clock_words, ddl, deadlines, locks
from lost_update_lab.servers.mariadb.bypass import MariadbBypassDetector, made
from lost_update_lab.servers.mariadb.looks import MariadbLooks
from lost_update_lab.servers.mariadb.memoised import (
    LOOKS,
    HeldInTables,
    KeptOfSchedule,
    MariadbAnswer,
    MariadbAnswers,
    MemoisedMariaDB,
    Status,
    Wait,
    look_at_isolation,
    undisturbed,
)
from lost_update_lab.servers.mariadb.out_of_sight import OutOfSight
from lost_update_lab.servers.mariadb.patience import GIVES_UP_READING
from lost_update_lab.servers.mariadb.session import STAYS, Driver, ended, session_of
from lost_update_lab.servers.mariadb.unseen import CALLED_IN_MARIADB, HiddenOnMariadb
from lost_update_lab.snapshot.by_server import ByServer, shown_of
from lost_update_lab.snapshot.mariadb import MariaDBSnapshot, Rows
from lost_update_lab.telling.narrative import shortened

MARIADB = "mariadb"
NO_TABLES = "the explorer sees locks of rows and of names, and none of whole tables (LOCK TABLES, DDL)"
BY_ROWS = "lock a row, or a name (GET_LOCK)"
_UNCOUNTED = re.compile(
    r"\s*(?:UPDATE|DELETE|SELECT|COMMIT|ROLLBACK|SET|BEGIN|START|SAVEPOINT|RELEASE)\b", re.IGNORECASE
)
#: how many seconds the server's time zone is ahead of UTC
_ZONE = "SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), NOW())"
#: whether its SYSDATE() goes by the session's clock (--sysdate-is-now)
_SYSDATE = ("SET SESSION timestamp = 1", "SELECT SYSDATE() = NOW()", "SET SESSION timestamp = DEFAULT")


class MariaDBServer(KeptOfSchedule, Plain):
    """`connect`: makes a connection of the explorer's own to the database. `driver`: how to talk past the gates.
    `left_out`: columns that make no state, such as times of day: their names, or those of table and column. `besides`:
    tables that no schedule writes. `looks`: others may come between a command's look and its first lock."""

    name = MARIADB
    lags = learns = False
    virtual_by = "each session's timestamp"
    #: the isolation level of transactions that do not ask for one; "": what their sessions have
    level = ""
    #: what it writes by itself, and makes no state
    by_server: ByServer | None = None

    def __init__(
        self,
        connect: Callable[[], Any],
        driver: Driver,
        left_out: Collection[str | tuple[str, str]] = (),
        besides: Collection[str] = (),
        looks: bool = False,
    ) -> None:
        self._new_connection, self.driver, self._left_out = connect, driver, frozenset(left_out)
        self.admin, self._holder = self._mine(), self._mine()
        self.snapshot = MariaDBSnapshot(self.ask, self._held_by_it, besides)
        self._bypass = MariadbBypassDetector(self.ask, self._next_number)
        self.unseen, self._zone = HiddenOnMariadb(self.ask), int(self.ask(_ZONE)[0][0])
        self.out_of_sight = OutOfSight(self.ask, self.unseen.behind, self.snapshot.sequences)
        self._sysdate_is_now = bool([self.ask(each) for each in _SYSDATE][1][0][0])
        #: commands that read and write
        self.compound = Compound(lambda: (str(name) for (name,) in self.ask(CALLED_IN_MARIADB)), looks)
        self.looks = MariadbLooks(self.ask, self.snapshot.tables, watched=looks)
        self._seen: dict[int, HeldInTables] = {}
        self.version = 0
        self._ask = self.changed = True
        self._written: set[str] = set()
        #: commands that wait, and those of them whose answers are there
        self._waiting: dict[Any, tuple[str, Wait]] = {}
        self._free: set[Any] = set()
        self.timed, self.digits = False, frozenset[int]()
        self.answers = MariadbAnswers()
        self.begin_kept(False)

    def _mine(self) -> Any:
        connection = self._new_connection()
        made().append(self.driver.number(connection))
        self.driver.run(connection, "SET SESSION autocommit = 1")
        self.driver.run(connection, STAYS)
        return connection

    def _next_number(self) -> int:
        probe = self._mine()
        try:
            return self.driver.number(probe)
        finally:
            self.driver.close(probe)

    @property
    def address(self) -> str:
        """The address by which clients reach it."""
        return self.driver.address(self.admin)

    def ask(self, text: str) -> tuple[tuple[Any, ...], ...]:
        """One round trip beside the gates."""
        return self.driver.run(self.admin, text)

    def _held_by_it(self, text: str) -> tuple[tuple[Any, ...], ...]:
        return self.driver.run(self._holder, text)

    def begin(self, known: int = -1) -> None:
        self._seen = {version: held for version, held in self._seen.items() if version <= known}
        self.version, self._ask, self.changed = 0, True, False
        self._waiting, self._free = {}, set()
        self.begin_kept(self.timed)
        self.looks.make(wanted=self.compound.any_looks)
        self._look()

    def restore(self) -> None:
        """Undo what the last run has written. The system calls this when it is reset."""
        self.snapshot.restore(self._written)
        self._written.clear()

    # -- what it holds ------------------------------------------------------------------------------------------

    def touched(self) -> None:
        """What was released works on by itself, and may commit: the look is one at what it has left."""
        self._settle()
        self.version, self.changed = self.version + 1, True
        self._look()  # now: a row that is soon deleted leaves its traces in the indexes

    def before_step(self, op: Op) -> None:
        look_at_isolation(self.answers, op)
        if not op.reads and op.text not in ENDS:
            self._written |= self.snapshot.named_in(op.text)

    def draws(self, op: Op) -> bool:
        """Does it draw a number from a counter?"""
        if op.reads or op.text in ENDS:
            return False
        if _UNCOUNTED.match(op.text):
            return self.snapshot.draws_behind(op.text)
        return self.snapshot.draws(self.snapshot.named_in(op.text))

    def ask_again(self) -> None:
        """A command has ended, so others may be free."""
        self._ask = True

    @property
    def held(self) -> HeldInTables:
        return self._look()

    def _look(self) -> HeldInTables:
        """Look once for each version."""
        if self.version not in self._seen:
            rows = self.snapshot.rows()
            lines = self._lines(rows)
            before = self._seen[self.version - 1].ever if self.version - 1 in self._seen else frozenset[str]()
            contents = "".join(f"{line}\n" for line in lines).encode()
            names = {name: table.columns for name, table in self.snapshot.tables.items()}
            ends = deadlines.ends(rows, names, self._zone, self.digits) if self.timed else ()
            self._seen[self.version] = HeldInTables(contents, repr(rows).encode(), before | set(lines), ends)
        return self._seen[self.version]

    def _lines(self, rows: Rows) -> list[str]:
        lines = []
        for name, of_table in rows.items():
            columns = self.snapshot.tables[name].columns
            kept = [
                place for place, column in enumerate(columns) if not self._left_out & {column, (name, column)}
            ]
            shown = shown_of(self.by_server, name, columns)
            lines += [f"{name} {[shown(place, row[place]) for place in kept]!r}" for row in of_table]
        return lines

    def memoised(self) -> MemoisedMariaDB:
        """The memoised server, as this server is now: no session is inside a transaction."""
        return MemoisedMariaDB(self.name, self.answers, self.held, self.clock, self.draws)

    # -- its clock ----------------------------------------------------------------------------------------------

    def by_the_clock(self, text: str) -> bool:
        """As HiddenOnMariadb.by_the_clock."""
        return self.unseen.by_the_clock(text, self.timed)

    def clock_inside(self, text: str) -> str:
        """What a view, a routine or a trigger in this command says that goes by the server's own clock. "": nothing."""
        asks = any(map(clock_words.goes_on, self.unseen.clocks_in(text)))
        return "SYSDATE()" if asks and not self._sysdate_is_now else ""

    def becomes_timed(self, text: str = "") -> bool:
        """Is this the first command in which the clock decides, or one that asks for a finer time? From the next run on
        its time is a part of each state, and what the server has answered so far does not count."""
        shown = self.unseen.digits(text)
        if self.timed and shown <= self.digits:
            return False
        self.timed, self.digits = True, self.digits | shown
        self.answers = MariadbAnswers()
        self._seen.clear()
        return True

    def defaults_become_virtual(self) -> None:
        """The times that a DEFAULT writes are a part of each state, too."""
        self.unseen.virtual_defaults = True
        self.becomes_timed()

    def tell_time(self, connection: Any) -> None:
        """Tell the session what its next command's NOW() is."""
        session = session_of(connection)
        if session.told != self.clock.shows and self.driver.is_open(connection):
            session.told = self.clock.shows
            self.driver.run(connection, f"SET SESSION timestamp = {Epoch.shows + session.told / SECOND:.6f}")

    # -- which command is blocked -------------------------------------------------------------------------------

    def waits_for(self, connection: Any, op: Op) -> str:
        """What its command waits for: "rows", or a "name". "": nothing. Raises Broken for a lock on a whole table."""
        self._ask = True
        number = self.driver.number(connection)
        found = locks.waits_for(self.ask, number, op.text)
        if not found and (state := self.ask(locks.TABLES.format(number))):
            raise Broken(f"{state[0][0]} ({shortened(op.text, 80)}): {NO_TABLES}", BY_ROWS)
        return found

    def asks(self, connection: Any, op: Op, status: Status, *how: object) -> None:
        """A command is about to be sent, or to go on after a wait. Note what its answer depends on."""
        session = session_of(connection)
        session.asked, session.timed = self.question(session.who, op, status, *how)
        session.found = self.held.found

    def learn(self, connection: Any, op: Op, answer: MariadbAnswer) -> None:
        """It was answered."""
        session, status = session_of(connection), answer.status
        inside = bool(status.inside or status.holds)
        self.went(session.who, session.timed, session.found, answer.reply, inside, self.draws(op))
        if self.learns and session.asked:
            self.answers.known[session.asked] = answer._replace(held=None if op.local else answer.held)

    def waits(self, connection: Any, op: Op, wait: Wait) -> None:
        session = session_of(connection)
        self._waiting[connection], self._ask = (op.text, wait), True
        self.way.waits(session.found, session.who, session.timed, self.draws(op))
        if self.learns and session.asked:
            self.answers.known[session.asked] = wait

    def begins(self, connection: Any, text: str) -> None:
        """This command is about to be sent."""
        self.looks.note(text, locks_what_it_sees=not self.answers.weak)
        if self.compound.looks_first(text):
            self.looks.hold(self.driver.number(connection), text)

    def makes(self, text: str) -> bool:
        """Does this command leave something else than rows?"""
        watched = self.looks.watched
        return watched and ddl.makes(text, self.snapshot.tables, self.looks.routines_in(text))

    def looked(self, connection: Any) -> None:
        """Its command has looked at rows, and has locked none."""
        session = session_of(connection)
        self.way.looks(session.found, session.who, session.timed)
        if self.learns and session.asked:
            self.answers.known[session.asked] = LOOKS

    def too_late(self, connection: Any) -> None:
        """The time that its command may wait is over, and the server ends it. Or its client reads no longer."""
        session_of(connection).late = self._waiting[connection][1].limit
        if session_of(connection).late != GIVES_UP_READING:
            self.interrupt(connection)
        self.way.late(self.held.found, session_of(connection).who)

    def commits(self, task: Task) -> bool:
        return bool(task.op and task.op.alone) or session_of(task.session).commits

    def goes_on(self, connection: Any) -> None:
        self._waiting.pop(connection, None)
        self._free.discard(connection)

    def freed(self, waiting: Sequence[Task]) -> list[Task]:
        self._settle()
        found = [task for task in waiting if task.session in self._free]
        if len(found) > 1:  # they may have raced for the next row
            self.way.known = False
        if self.learns and (place := self.way.place(self.held.found, self.answers.strict)):
            self.answers.free[place] = tuple(session_of(task.session).who for task in found)
        return found

    def _settle(self) -> None:
        """Of the commands that wait, find those that have ended."""
        if not (self._ask and self._waiting):
            return
        self._ask = False
        of = {each: (self.driver.number(each), text) for each, (text, _) in self._waiting.items()}
        self._free = set(locks.settle(of, self.ask, self.driver.has_answered))

    def interrupt(self, connection: Any) -> None:
        """End the waiting command, and nothing else of the session. If the command is no longer blocked, hear it out:
        the interruption would come too late, and strike the next command."""
        number, text = self.driver.number(connection), session_of(connection).asks
        while not self.driver.has_answered(connection, 0):
            looks = self.looks.waits(number)
            if looks or locks.waits_for(self.ask, number, text) or self.ask(locks.TABLES.format(number)):
                self.ask(f"KILL QUERY {number}")
                while not self.driver.has_answered(connection, 1000):
                    pass  # for a moment it still looks as if it waited
            self.driver.has_answered(connection, NEWS_WITHIN_MS)
        self.looks.let_go(number)
        self._ask = True

    # -- sessions -----------------------------------------------------------------------------------------------

    def holds_now(self, connection: Any, holds: bytes) -> None:
        """A command begins, or has ended, that may have taken a lock beyond its transaction."""
        session_of(connection).holds = holds
        self.note(session_of(connection).who, holds)

    def look_at_names(self, connection: Any, text: str) -> None:
        """Such a command has ended. Whether its session has the lock of a name by now is asked of the server."""
        session, number = session_of(connection), self.driver.number(connection)
        session.names |= frozenset(locks.NAMED.findall(text))
        owners = self.ask(
            f"SELECT {', '.join(f'IS_USED_LOCK({name})' for name in sorted(session.names)) or 0}"
        )
        session.keeps = number in owners[0]

    def unexplored(self, commits: int) -> Broken | None:
        return self.looks.unexplored.reason(commits)

    def end_sessions(self, sessions: Sequence[Any], cut: bool = False) -> None:
        """Do to each session what its end would do: roll back, drop its locks."""
        for connection in sessions:
            self.clear(connection)
            self.has_ended(session_of(connection).who)

    def clear(self, connection: Any) -> None:
        """The same on the server. What is kept of the schedule, for its last state, stays."""
        if ended(self.driver, connection, self.interrupt):
            self._ask = True
        self.goes_on(connection)

    def undisturbed(self, op: Op, own: Sequence[Any], others: Sequence[Any]) -> bool:
        return undisturbed(self.answers, op, self.holds(others))

    def holds(self, sessions: Sequence[Any]) -> bool:
        live = [each for each in sessions if self.driver.is_open(each)]
        return any(self.driver.inside(each) or session_of(each).holds for each in live)

    def keeps_rows(self, sessions: Sequence[Any]) -> bool:
        return any(session_of(each).status(self.driver, each).locked for each in sessions)

    def keeps_out(self, sessions: Sequence[Any]) -> bool:
        return any(session_of(each).keeps for each in sessions if self.driver.is_open(each))

    def lets_go(self, sessions: Sequence[Any]) -> bool:
        """By a session of its own: the thread that hangs may be about to ask by the usual one."""
        busy = [each for each in sessions if self.driver.is_open(each) and session_of(each).busy]
        if busy:
            probe = self._mine()
            for each in busy:
                self.driver.run(probe, f"KILL QUERY {self.driver.number(each)}")
            self.driver.close(probe)
        return bool(busy)

    def settle(self, sessions: Sequence[Any]) -> None:
        """After each run: every session is as it was when it was made."""
        for connection in sessions:
            self.clear(connection)
        for connection in sessions:
            session_of(connection).mend(self.driver, connection)

    def watch(self) -> None:
        self._bypass.watch()

    def bypassed(self) -> str:
        return self._bypass.bypassed()

    def close(self) -> None:
        self.restore()
        self.looks.drop()
        self.snapshot.drop()
        for connection in (self.admin, self._holder):
            self.driver.close(connection)
