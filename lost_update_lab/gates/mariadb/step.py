"""One command to MariaDB as a step: executed by a thread, replayed from the recording, or known with its answer."""

from __future__ import annotations

import re
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pymysql

from lost_update_lab.adapters import pymysql as driver
from lost_update_lab.gates.mariadb.describe import (
    NO_MARIADB_CLOCK,
    is_refused,
    lasts,
    locks_rows,
    locks_tables,
    shown,
    tells_patience,
)
from lost_update_lab.memo.recording import Recording
from lost_update_lab.model.commands import ENDS, Op
from lost_update_lab.model.digest import digest
from lost_update_lab.model.errors import BY_ANOTHER_CLOCK, Broken, Unknown
from lost_update_lab.model.memoised_server import Who
from lost_update_lab.model.server import NEWS_WITHIN_MS
from lost_update_lab.model.workers import Standing, Task
from lost_update_lab.schedule import pending, refusals
from lost_update_lab.schedule.world import World
from lost_update_lab.servers.mariadb import clock_words
from lost_update_lab.servers.mariadb.memoised import (
    LOOKS,
    MARIADB_GOES_ON,
    MariadbAnswer,
    MemoisedMariaDB,
    Status,
    Wait,
)
from lost_update_lab.servers.mariadb.patience import GIVES_UP_READING, STATEMENT, waiting
from lost_update_lab.servers.mariadb.server import MARIADB, MariaDBServer
from lost_update_lab.servers.mariadb.session import MariadbSession, look_again, session_of
from lost_update_lab.servers.mariadb.way import remembers
from lost_update_lab.telling.narrative import shortened

#: InnoDB has ended a deadlock: this side hears it
_DEADLOCK = re.compile(r"\w+: 1213,")
#: the errors of a command that was interrupted, of one that waited too long for a row, and of one that took too long
_INTERRUPTED, _TIMED_OUT, _TOO_LONG = 1317, 1205, 1969
LOST_CONNECTION, LOST_IT = 2013, "Lost connection to MySQL server during query"


class ReadTimedOut(Exception):
    """The client hears nothing more of its command, which waits on the server (unheard.py)."""


@dataclass(slots=True)
class MariadbCommand:
    """A command as it was recorded. `name`: the connection's, by its thread and its place among those of the thread.
    `method`: PyMySQL's, which has sent it, and `text`: what that sends. `commits`: before this command, each one of the
    session does so by itself."""

    name: tuple[int, int]
    op: Op
    method: str
    text: str
    commits: bool

    def same(self) -> Hashable:
        return self.name, self.op.identity, self.op.text, self.op.alone, self.method

    def play(self, world: World, task: Task, recording: Recording) -> Standing:
        sessions, used = (
            task.worker.sessions.setdefault(MARIADB, {}),
            task.uses.setdefault(MARIADB, []),
        )
        if self.name[1] == len(used):
            used.append(recording.connection(task.worker, MARIADB, lambda one: one not in sessions))
        connection = used[self.name[1]]
        if connection not in sessions and not driver.is_open(connection):
            raise Unknown(task.worker.index)
        sessions[connection] = task
        session_of(connection).who = task.worker.index, *self.name
        with suppress(pymysql.MySQLError):
            yield from execute(world, task, connection, self)

    def stand(self, world: World, task: Task) -> None:
        who, server = (task.worker.index, *self.name), world.servers[MARIADB]
        assert isinstance(server, MemoisedMariaDB)
        task.worker.sessions.setdefault(MARIADB, {})[who] = task
        server.uses(who, self.commits)
        pending.stand(world, task, self.op)

    def turn(self, world: World, task: Task, recording: Recording) -> None:
        who, server, op = (task.worker.index, *self.name), world.servers[MARIADB], self.op
        assert isinstance(server, MemoisedMariaDB)
        before = server.session(who)
        if before.waits:
            task.loses_reply |= bool(task.op and task.op.silent)
            task.history.meets(who, server.contents())
        else:
            _meets(task, server, who, before, op)
            if lasts(op.text) and not before.cut:
                server.holds_now(who, digest(before.holds, op.identity))
        answer = server.answer(who, op)
        if isinstance(answer, Wait):
            task.history.meets(who, server.contents())
            if answer == LOOKS:
                pending.between(world, task, op)
                return
            task.sent(who, too_late)
            pending.block(world, task, answer.seconds, answer.in_vain)
            return
        if lasts(op.text) and not answer.status.cut:
            server.holds_now(who, answer.status.holds)
        if not (answer.status.inside or answer.status.holds):
            task.history.is_out(who)
        task.worker.commits += answer.touched
        _tell(world, task, op, answer.reply, answer.shown)
        if task.loses_reply and not answer.failed:
            server.end_sessions([who])
            server.cut(who)
            _lose(world, task, who)


def execute(
    world: World, task: Task, connection: Any, command: MariadbCommand, waits: bool = False
) -> Standing:
    """Stand before the command, then send it and read the answer. Returns what PyMySQL's method does. `waits`: it was
    sent, and waits. Raises ReadTimedOut."""
    server, session, op = server_of(world), session_of(connection), command.op
    if not waits:
        yield from pending.standing(world, task, op)
        _before(world, task, connection, op)
    try:
        yield from _sent(world, task, connection, command, waits)
        found = driver.heard(connection, command.method)
    except pymysql.MySQLError as raised:
        raise _failed(world, task, connection, op, raised) from None
    server.looks.let_go(driver.number(connection))
    session.busy, session.late = False, ""
    answer = driver.answer(connection)
    if not driver.commits_by_itself(connection):
        driver.look(connection)
    reply = repr((answer, found)).encode()
    told = shown(op, answer)
    session.locked = driver.inside(connection) and (session.locked or locks_rows(op, answer))
    _after(task, server, connection, op, reply, told)
    _tell(world, task, op, reply, told)
    if task.loses_reply:
        server.end_sessions([connection])
        session.cut = driver.take_away(connection)
        _lose(world, task, session.who)
        raise pymysql.OperationalError(LOST_CONNECTION, LOST_IT)
    return found


def _before(world: World, task: Task, connection: Any, op: Op) -> None:
    """It is about to be sent."""
    server, session = server_of(world), session_of(connection)
    server.changed |= not op.reads  # a counter moves on even if the insert is never committed
    status = session.status(driver, connection)
    session.commits = status.commits and not status.inside
    _meets(task, server, session.who, status, op)
    if lasts(op.text) and not status.cut:  # it may get it at any time
        server.holds_now(connection, digest(session.holds, op.identity))
    server.tell_time(connection)
    server.asks(connection, op, status)
    if not (op.reads or op.local or status.cut):
        server.begins(connection, op.text)
    session.sent = world.now


def _failed(
    world: World, task: Task, connection: Any, op: Op, raised: pymysql.MySQLError
) -> pymysql.MySQLError:
    """It was answered by an error. Returns what the worker hears."""
    server, session = server_of(world), session_of(connection)
    server.looks.let_go(driver.number(connection))
    error = _as_it_would_be(session.late, raised)
    session.busy, session.late = False, ""
    driver.look(connection)
    told = f"{type(error).__name__}: {', '.join(map(str, error.args))}"
    _after(task, server, connection, op, told.encode(), told, failed=True)
    _tell(world, task, op, told.encode(), told)
    return error


def _sent(world: World, task: Task, connection: Any, command: MariadbCommand, waits: bool) -> Standing:
    """Send it, unless it was sent, and `waits`. Ends when the answer is there."""
    session, text = session_of(connection), clock_words.virtual(command.text)
    if not waits:
        driver.ask(connection, waiting(text))
        session.busy, session.asks = True, command.text
    yield from _answered(world, task, connection, command.op, waits)
    if session.late not in ("", STATEMENT) and waiting(text, over=True) != waiting(text):
        driver.hear_out(connection)  # it has waited for a name: ask again without waiting
        session.late = ""
        driver.ask(connection, waiting(text, over=True))


def _answered(world: World, task: Task, connection: Any, op: Op, waits: bool) -> Standing:
    """If no answer comes, the server is asked whether the command waits. If no other session is inside a transaction,
    or holds a lock, nothing could block it. `waits`: it has begun to wait."""
    server, session = server_of(world), session_of(connection)
    others = [s for w in world.workers for s in w.sessions.get(MARIADB, ()) if s is not connection]
    number = driver.number(connection)
    patience = NEWS_WITHIN_MS if server.looks.holds(number) or server.holds(others) else None
    while not driver.has_answered(connection, patience):
        if not session.late and server.looks.waits(number):
            yield from _looks(world, task, connection, op)
            continue
        kind = "" if session.late else server.waits_for(connection, op)
        if not kind:
            patience = min(2 * (patience or NEWS_WITHIN_MS), 100)  # a busy machine: it will come
            continue
        if clock_words.goes_on(op.text):
            raise Broken(
                f"{NO_MARIADB_CLOCK} (SYSDATE() after a wait, in {shortened(op.text, 80)})", BY_ANOTHER_CLOCK
            )
        server.looks.let_go(number)  # it would stop there only later, and then nobody frees it
        session.since, waits = session.since if waits else world.now, False
        if (wait := session.wait(kind, world.now)).limit == GIVES_UP_READING:
            _is_not_known(task, session)
        server.waits(connection, op, wait)
        task.sent(connection, too_late)
        task.history.meets(session.who, server.contents())
        yield from pending.blocked(world, task, wait.seconds, wait.in_vain)
        server.goes_on(connection)
        if session.late == GIVES_UP_READING:
            raise ReadTimedOut
        task.history.meets(session.who, server.contents())
        server.asks(
            connection,
            op,
            session.status(driver, connection)._replace(waits=wait, late=session.late),
            MARIADB_GOES_ON,
        )
        patience = NEWS_WITHIN_MS


def _is_not_known(task: Task, session: MariadbSession) -> None:
    """What its client does with the limit, only real code shows, and only the server what becomes of the command."""
    if task.steps:
        raise Unknown(task.worker.index)
    session.asked = None


def _looks(world: World, task: Task, connection: Any, op: Op) -> Standing:
    """What others do until it locks its first row, it does not see."""
    server, session = server_of(world), session_of(connection)
    server.looked(connection)
    task.history.meets(session.who, server.contents())
    pending.between(world, task, op)
    yield
    task.loses_reply |= bool(task.op and task.op.silent)
    task.history.meets(session.who, server.contents())
    status = session.status(driver, connection)._replace(waits=LOOKS)
    server.asks(connection, op, status, MARIADB_GOES_ON)
    server.looks.let_go(driver.number(connection))


def too_late(world: World, task: Task) -> None:
    """The time that its command may wait is over, or that its client reads."""
    server = world.servers[MARIADB]
    assert isinstance(server, MariaDBServer | MemoisedMariaDB)
    server.too_late(task.session)
    if isinstance(server, MariaDBServer) and session_of(task.session).late == GIVES_UP_READING:
        session_of(task.session).place = world.waiting_line.index(task)
        world.wake(task, world.now)


def server_of(world: World) -> MariaDBServer:
    server = world.servers[MARIADB]
    assert isinstance(server, MariaDBServer)
    return server


def _meets(task: Task, server: MariaDBServer | MemoisedMariaDB, who: Who, status: Status, op: Op) -> None:
    """What is committed decides what a command reads, writes or locks, and what its transaction sees from then on."""
    if op.local or op.text in ENDS or status.cut:
        return
    if status.inside or not status.commits or lasts(op.text):
        asked = server.clock.asked(op, who).identity
        task.history.meets(who, server.contents(), server.hidden(), asked)


def _as_it_would_be(late: str, raised: pymysql.MySQLError) -> pymysql.MySQLError:
    """The scheduler has interrupted the command because its time was over. That has the effect of the time-out: it
    undoes this one statement."""
    if not late or not raised.args or raised.args[0] != _INTERRUPTED:
        return raised
    if late == STATEMENT:
        return pymysql.OperationalError(
            _TOO_LONG, "Query execution was interrupted (max_statement_time exceeded)"
        )
    return pymysql.OperationalError(_TIMED_OUT, "Lock wait timeout exceeded; try restarting transaction")


def _after(
    task: Task, server: MariaDBServer, connection: Any, op: Op, reply: bytes, told: str, failed: bool = False
) -> None:
    session = session_of(connection)
    server.ask_again()  # an error, too, frees what its transaction held
    touched = False
    if driver.is_open(connection):
        inside = driver.inside(connection)
        session.changed |= op.lasts or remembers(op.text)
        if tells_patience(op.text):
            session.asks = op.text
            look_again(driver, connection)
        if lasts(op.text):
            server.look_at_names(connection, op.text)
            session.tables |= locks_tables(op.text)
            holds = session.keeps or session.tables
            server.holds_now(connection, digest(session.holds, op.identity, reply) if holds else b"")
        touched = not op.reads and not (inside and _only_rows(op.text))
    status = session.status(driver, connection)
    if not status.inside and not status.holds:
        task.history.is_out(session.who)
    if touched:
        task.worker.commits += 1
        server.touched()
    server.learn(connection, op, MariadbAnswer(reply, told, failed, server.held, touched, status))


def _only_rows(text: str) -> bool:
    """Is it certain that the command commits nothing by itself?"""
    return text.lstrip()[:6].upper() in ("INSERT", "UPDATE", "DELETE", "SELECT")


def _tell(world: World, task: Task, op: Op, reply: bytes, told: str) -> None:
    task.history.add(op.identity, reply)
    task.timed |= op.timed
    if is_refused(op, told):
        refusals.note(world, task)
    world.ended_deadlock |= _DEADLOCK.match(told) is not None
    pending.tell(world, task, op, told)
    pending.hear(world, task, reply)


def _lose(world: World, task: Task, who: Who) -> None:
    task.history.is_out(who)
    world.record(task.worker.name, task.name, "lost-reply", "the reply is lost", "connection lost")
    task.history.add(b"lost")
    pending.hear(world, task, "lost")
