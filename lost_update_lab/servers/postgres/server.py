"""PostgreSQL as the scheduler sees it: what is committed, which session blocks which, how sessions end."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import psycopg
from psycopg import IsolationLevel
from psycopg.pq import ExecStatus, TransactionStatus

from lost_update_lab.adapters import psycopg as driver
from lost_update_lab.model.commands import ENDS, Op
from lost_update_lab.model.errors import Broken
from lost_update_lab.model.server_defaults import Plain
from lost_update_lab.model.workers import Task
from lost_update_lab.servers.clock import ServerClock
from lost_update_lab.servers.compound import Compound
from lost_update_lab.servers.deadlines import Ends
from lost_update_lab.servers.draws import Draws
from lost_update_lab.servers.makes import refused
from lost_update_lab.servers.postgres import ddl, deadlines, levels, limits, locks
from lost_update_lab.servers.postgres.bypass import PostgresBypassDetector
from lost_update_lab.servers.postgres.kept import KeptSessions
from lost_update_lab.servers.postgres.locks import BLOCKERS, HELD, array, edges, holds, who_of, wrote
from lost_update_lab.servers.postgres.looks import Looks
from lost_update_lab.servers.postgres.memoised import MemoisedPostgres, PostgresAnswers
from lost_update_lab.servers.postgres.overlaps import Overlaps
from lost_update_lab.servers.postgres.shadows import SET_CLOCK, shadows, told
from lost_update_lab.servers.postgres.transactions import NOT_STRICT, PostgresWay
from lost_update_lab.servers.postgres.unseen import QUESTIONS, HiddenOnPostgres
from lost_update_lab.snapshot.other_sessions import is_locked_out
from lost_update_lab.snapshot.postgres import AS_THEY_LIE, PostgresSnapshot
from lost_update_lab.snapshot.written import LOOK_AT_ALL, publish

POSTGRES = "postgres"
_TABLES = re.compile(r"\s*(?:CREATE|ALTER|DROP|DO|CALL)\b", re.IGNORECASE)
LOCKED = "the explorer cannot look at a table that a worker has locked as a whole (LOCK TABLE, TRUNCATE)"
BY_ROWS = "lock a row; or let others read: LOCK TABLE … IN EXCLUSIVE MODE, DELETE instead of TRUNCATE"
#: how long a look may wait for such a lock. No worker goes on meanwhile, so it waits in vain
LOOKS_WITHIN = "SET lock_timeout = '2s'"
#: one version of the contents: the part that makes a state, all of them, and the times that may be yet to come
Look = tuple[bytes, bytes, Ends]


class PostgresServer(Plain):
    """`contents_sql`: one query whose rows are all that the system keeps there. `besides`: its last column can be read
    but makes no state, such as times of day. `opening`: the snapshot whose contents these are."""

    name, virtual_by, lags, cancels = POSTGRES, "shadowed functions", False, True
    #: the isolation level of transactions that do not ask for one; None: what their sessions have
    level: IsolationLevel | None = None
    #: columns, each with its table, into which its own clock may write, and not the virtual one: they hold no lease
    by_own_clock: Collection[tuple[str, str]] = ()

    def __init__(
        self,
        url: str,
        contents_sql: str,
        besides: bool = False,
        opening: PostgresSnapshot | None = None,
        may_make: Collection[str] | None = None,
    ) -> None:
        """`may_make`: the commands by which operations may make what is no row. None: whoever explores them knows all
        that they send, so neither what they make is watched, nor whether others come between a look and a lock."""
        self.may_make = may_make
        self._columns, self._opening = -1 if besides else None, opening
        self._counted = opening is not None and opening.counts
        self.admin: psycopg.Connection[Any] = psycopg.connect(url, autocommit=True)
        self.admin.execute(f"{LOOKS_WITHIN}; {AS_THEY_LIE}")
        questions = {b"contents": contents_sql, b"blockers": BLOCKERS, b"held": HELD}
        questions |= QUESTIONS | ({b"look_at_all": LOOK_AT_ALL} if self._counted else {})
        self._prepare(questions)
        self._seen: dict[int, Look] = {}
        self.version, self.steps_by, self._proving, self.learns, self._refuses = 0, 0, False, False, False
        #: some command asks for its clock, which is virtual from then on
        self.timed = self._shadowed = self._has_times = False
        self.clock = ServerClock(decides=False)
        #: the isolation of a transaction that asks for none
        self._usual = levels.default_of(self.admin)
        self._bypass = PostgresBypassDetector(self.admin)
        self._ask = self.changed = True
        self._blockers: dict[int, set[int]] = {}
        self._line = locks.WaitingLine(self.admin, self._blockers_of)
        self.looks = Looks(self.admin, self._blockers_of, watched=may_make is not None)
        self.answers, self.way = PostgresAnswers(), PostgresWay()
        self.draws, self.overlaps, self.kept = Draws(), Overlaps(), KeptSessions()
        self.unseen = HiddenOnPostgres(self.ask, " ".join(opening.names) if opening else contents_sql)
        #: commands that read and write
        self.compound = Compound(partial(self.unseen.names_of, b"called"), looks=may_make is not None)

    def _prepare(self, questions: Mapping[bytes, str]) -> None:
        for name, query in questions.items():
            if message := self.admin.pgconn.prepare(name, query.encode()).error_message:
                raise RuntimeError(message.decode(errors="replace"))

    def ask(self, name: bytes, *values: bytes) -> list[tuple[bytes | None, ...]]:
        """One round trip beside the gates: a prepared query, with its rows as text."""
        self._proved()
        result = self.admin.pgconn.exec_prepared(name, values)
        if is_locked_out(result):
            raise Broken(LOCKED, BY_ROWS)
        if result.status != ExecStatus.TUPLES_OK:
            raise RuntimeError(result.error_message.decode(errors="replace"))
        columns = range(result.nfields)
        return [tuple(result.get_value(row, c) for c in columns) for row in range(result.ntuples)]

    def begin(self, known: int = -1) -> None:
        self._proved()
        self._seen = {version: held for version, held in self._seen.items() if version <= known}
        self.version, self._ask, self._blockers, self.changed = 0, True, {}, False
        self.way, self.draws, self.overlaps = PostgresWay(), Draws(), Overlaps()
        self.clock = ServerClock(self.timed)
        self.looks.make(wanted=self.compound.any_looks)
        self._set_clock()
        if self.answers.counting is None:
            self.answers.counting = self.unseen.names_of(b"counting")
            self.answers.beside = self.unseen.beside

    def touched(self, by: psycopg.Connection[Any] | None = None) -> None:
        """`by`: the session that has committed. None: that of another client, of which no counts are known."""
        if self._counted and not (by and publish(by.pgconn)):
            self.ask(b"look_at_all")
        self.version, self.changed = self.version + 1, True

    def before_step(self, op: Op) -> None:
        self.answers.hears(op)
        if self._opening and "ctid" in op.text.lower():
            self._opening.shows_places = True

    def ask_again(self) -> None:
        """A command has ended, so others may be free."""
        self._ask = True

    def contents(self) -> bytes:
        held = self.committed()  # first: what is seen now may be no longer over
        return self.clock.over() + held

    def committed(self) -> bytes:
        """The contents, whatever the time is."""
        return self._look()[0]

    def everything(self) -> bytes:
        """The same, including what makes no state."""
        return self._look()[1]

    traces = everything

    def _look(self) -> Look:
        """Look once for each version."""
        if self.version not in self._seen:
            rows = self.ask(b"contents")
            contents = repr([row[: self._columns] for row in rows]).encode()
            everything = repr(rows).encode() if self._columns else contents
            ends = deadlines.ends(self.ask(b"deadlines"), self.steps_by) if self._has_times else ()
            self._seen[self.version] = contents, everything, ends
            self.answers.ends[everything] = ends
        found = self._seen[self.version]
        if self.timed:
            self.clock.look(found[2])
        return found

    def clock_inside(self, text: str, timed: bool) -> str:
        """A function, a view or a column in this command that goes by the server's own clock. "": none."""
        return self.unseen.clocks.asked_in(text, timed)

    def defers(self, op: Op) -> bool:
        """May a trigger of what this command writes look only when the transaction commits?"""
        return (op.local or not op.reads) and self.unseen.defers(op.text)

    # -- its clock ----------------------------------------------------------------------------------------------

    def shadow(self) -> None:
        """Make the functions that answer in place of its clock."""
        if not self._shadowed:
            self._proved()
            done = self.admin.pgconn.exec_(shadows().encode())  # by libpq itself, which passes no gate
            if done.error_message:
                raise RuntimeError(f"a virtual clock: {done.error_message.decode()}")
            self.admin.pgconn.prepare(b"clock", SET_CLOCK)
            self._shadowed = True

    def becomes_timed(self) -> None:
        """From the next run on its clock is virtual. What it has answered so far does not count."""
        self.shadow()
        self.timed, self.answers = True, PostgresAnswers()
        self.admin.pgconn.prepare(b"columns", deadlines.columns())
        if query := deadlines.query(self.ask(b"columns"), self.by_own_clock):
            self.admin.pgconn.prepare(b"deadlines", query)
            self._has_times = True
        self._seen.clear()

    def tell_time(self, connection: Any) -> None:
        """Tell a session when its transaction and its command began."""
        connection.pgconn.exec_(told(*self.clock.told(connection.explorer_who)))

    def _set_clock(self) -> None:
        if self.timed:
            self.ask(b"clock", b"%d" % self.clock.shows)

    def leases(self) -> Mapping[str, int]:
        if self.timed:
            self._look()
        return self.clock.leases()

    def advance(self, now: int) -> list[str]:
        gone = self.clock.advance(now)
        self._set_clock()
        return gone

    def jump(self, ahead: int) -> str:
        gone = self.clock.jump(ahead)
        self._set_clock()
        return ", ".join(gone) or "nothing"

    def hidden(self) -> bytes:
        return self.clock.hidden() + self.draws.hidden() + self.overlaps.hidden()

    def isolation(self, connection: psycopg.Connection[Any]) -> IsolationLevel | None:
        """That of its transactions. None: PostgreSQL's own."""
        return levels.of(connection, self.level or self._usual)

    def writes_unseen(self, text: str) -> bool:
        """Might this command, which writes, change what the contents do not show?"""
        return bool(_TABLES.match(text)) or self.unseen.named_in(text)

    def memoised(self) -> MemoisedPostgres:
        """The memoised server, as this server is now: no session is inside a transaction."""
        contents, everything, _ = self._look()
        return MemoisedPostgres(self.name, self.answers, contents, everything, self.clock)

    # -- which session is blocked: asked of the server, never guessed from the SQL -------------------------------

    def is_blocked(self, connection: psycopg.Connection[Any]) -> bool:
        pid = connection.info.backend_pid
        self._ask = True  # one more blocked session may close a circle
        return bool(self._blockers_of([pid])[pid])

    def freed(self, waiting: Sequence[Task]) -> list[Task]:
        free: list[Task] = []
        if self._ask:
            self._ask = False
            free, self._blockers = self._line.settle({task: task.session for task in waiting})
        if self.learns and (place := self.way.place(self.everything(), self.answers.strict)):
            self.answers.free.setdefault(place, who_of(free))
        return free

    def _blockers_of(self, pids: list[int]) -> dict[int, set[int]]:
        return edges(self.ask(b"blockers", array(pids)))

    def deadlocked(self, waiting: Sequence[Task]) -> list[Task]:
        """The explorer's sessions never time out by themselves (deadlock_timeout): either side may be aborted."""
        pids = {t.session.info.backend_pid: t for t in waiting if t.op and t.op.server == POSTGRES}
        found = [pids[pid] for pid in locks.in_circle(list(pids), self._blockers)]
        if waiting and self.learns and (place := self.way.place(self.everything(), self.answers.strict)):
            self.answers.circle[place] = who_of(found)
        return found

    def abort(self, task: Task) -> None:
        self.looks.is_heard(task.op.text if task.op else "", "DEADLOCK_DETECTED")
        task.victim = True
        self.stop(task.session)

    def stop(self, session: Any) -> None:
        """Cancel its command, which waits: when such a wait ends, only the scheduler knows."""
        self.way.known = False
        self.cancel(session.info.backend_pid)
        self._line.stopping.add(session)
        self._ask = True

    def end_sessions(self, sessions: Sequence[Any], cut: bool = False) -> None:
        """Do to each session what its end would do: roll back, drop its locks. (Ending it costs 40 × more.)"""
        self._line.stopping.difference_update(sessions)
        for connection in sessions:
            raw = connection.pgconn
            idle = raw.transaction_status == TransactionStatus.IDLE
            if connection.closed or (idle and not holds(connection)):
                continue
            if raw.transaction_status == TransactionStatus.ACTIVE:
                self.cancel(raw.backend_pid)
                self.looks.let_go(connection)
                if locks.goes_through(raw):
                    self.touched(connection)
            if raw.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
                raw.exec_(b"ROLLBACK")
            raw.exec_(b"SELECT pg_advisory_unlock_all()")
            connection.explorer_calls = connection.explorer_holds = connection.explorer_locked = False
            self.draws.ended(connection.explorer_who)
            self.overlaps.ended(connection.explorer_who)
            if self.timed:
                self.clock.has_answered(connection.explorer_who, inside=False)
            if self.learns:
                self.way.ended(self.everything(), connection.explorer_who)
        self._ask = True

    def note(self, connection: Any, writes: bool, calls: bool) -> None:
        """A command has ended. One that `calls` a function may have taken a lock for the whole session."""
        self._line.stopping.discard(connection)
        idle = connection.pgconn.transaction_status == TransactionStatus.IDLE
        connection.explorer_locked = not idle and getattr(connection, "explorer_locked", False)
        connection.explorer_wrote = not idle and (writes or getattr(connection, "explorer_wrote", False))
        connection.explorer_calls = calls or getattr(connection, "explorer_calls", False)
        if connection.explorer_calls and idle:
            connection.explorer_holds = bool(self.ask(b"held", array([connection.info.backend_pid])))

    def cancel(self, pid: int) -> None:
        self._proved()
        self.admin.pgconn.exec_(b"SELECT pg_cancel_backend(%d)" % pid)
        self._line.go_on(pid)

    def commits(self, task: Task) -> bool:
        return bool(task.op and task.op.alone) or bool(task.session.explorer_commits)

    def lets_go(self, sessions: Sequence[Any]) -> bool:
        busy = [
            s for s in sessions if not s.closed and s.pgconn.transaction_status == TransactionStatus.ACTIVE
        ]
        for session in busy:
            self.cancel(session.info.backend_pid)
        return bool(busy)

    def undisturbed(self, op: Op, own: Sequence[Any], others: Sequence[Any]) -> bool:
        """Under READ COMMITTED, others' sessions matter only to a command that could run into their locks."""
        if self.answers.strict or any(
            getattr(s, "explorer_isolation", None) not in NOT_STRICT for s in (*own, *others)
        ):
            return False
        return op.reads or op.text in ENDS or not any(wrote(session) for session in others)

    def holds(self, sessions: Sequence[Any]) -> bool:
        live = [s for s in sessions if not s.closed]
        return any(s.pgconn.transaction_status != TransactionStatus.IDLE or holds(s) for s in live)

    def keeps_rows(self, sessions: Sequence[Any]) -> bool:
        return any(map(locks.keeps, sessions))

    def keeps_out(self, sessions: Sequence[Any]) -> bool:
        return any(holds(session) for session in sessions if not session.closed)

    def prove_idle(self, sessions: Sequence[Any]) -> None:
        """After each run. Raises RuntimeError with what a session still holds, now or when it is next used. The server
        has already said that none is inside a transaction; what outlasts a transaction is asked for."""
        sessions = [session for session in sessions if not session.closed]
        for connection in sessions:
            if connection.pgconn.transaction_status != TransactionStatus.IDLE:
                raise RuntimeError(f"session {connection.info.backend_pid} is left inside a transaction")
            connection.explorer_calls = connection.explorer_holds = connection.explorer_wrote = False
            connection.explorer_isolation = None
            limits.reset(connection)
            levels.put_back(connection)
            driver.forget_counts(connection)
        self._proved()
        self._proving = True
        pids = [array([session.info.backend_pid for session in sessions])]
        self.admin.pgconn.send_query_prepared(b"held" if self.may_make is None else b"left", pids)
        self.admin.pgconn.flush()

    def _proved(self) -> None:
        held, self._proving = self._proving, False
        for result in list(iter(self.admin.pgconn.get_result, None)) if held else ():
            rows = [result.get_value(row, 1) for row in range(result.ntuples)]
            if b"" in rows:
                raise refused()
            if result.status != ExecStatus.TUPLES_OK or rows:
                raise RuntimeError(f"sessions still hold locks: {rows or result.error_message!r}")

    settled = _proved

    def unexplored(self, commits: int) -> Broken | None:
        return self.looks.unexplored.reason(commits)

    def notes(self) -> list[str]:
        return self.looks.rows.notes()

    def watch(self) -> None:
        self._bypass.watch()
        if self.may_make is None:
            return
        ddl.refuse(self.admin, self.may_make)
        if not self._refuses:
            self._refuses = True
            self._prepare({b"left": f"{HELD} UNION ALL {ddl.REFUSED}"})

    def bypassed(self) -> str:
        with suppress(Broken):  # it has ended the search, or comes too late for it
            self._proved()
        return self._bypass.bypassed()

    def close(self) -> None:
        self._line.end()
        self.kept.close()
        if self.may_make is not None:
            ddl.allow(self.admin)
            self.looks.drop()
        self.admin.close()
