"""The gate of PyMySQL: everything that a Connection sends passes `_execute_command`, Django's ORM included."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import Any

import pymysql
from pymysql.connections import Connection

from lost_update_lab.adapters import pymysql as driver
from lost_update_lab.gates.invariant_call import asks_a_server
from lost_update_lab.gates.invariant_clock import InvariantClock
from lost_update_lab.gates.mariadb import unheard
from lost_update_lab.gates.mariadb.closing import sent_by_the_end
from lost_update_lab.gates.mariadb.describe import (
    NO_MARIADB_CLOCK,
    beyond,
    describe,
    outside_of_a_transaction,
    text_of,
)
from lost_update_lab.gates.mariadb.step import MariadbCommand, ReadTimedOut, execute, server_of
from lost_update_lab.gates.patch import Patches
from lost_update_lab.model.commands import ENDS
from lost_update_lab.model.effects import NOBODY
from lost_update_lab.model.errors import (
    BY_EXECUTE,
    IN_THE_COMMAND,
    Broken,
    ClockDecides,
    ClockInside,
    WritesByReading,
)
from lost_update_lab.model.workers import Halt, Standing, Task, halt
from lost_update_lab.runs.one_owner import only_owner
from lost_update_lab.runs.place import Active, Here, beside, connecting, here
from lost_update_lab.runs.run import Run
from lost_update_lab.servers import random_commands
from lost_update_lab.servers.connections_before import existing
from lost_update_lab.servers.makes import refused
from lost_update_lab.servers.mariadb import clock_words
from lost_update_lab.servers.mariadb.bypass import made
from lost_update_lab.servers.mariadb.clock_words import sleeps, without_sleep
from lost_update_lab.servers.mariadb.server import MARIADB, MariaDBServer
from lost_update_lab.servers.mariadb.session import look, session_of
from lost_update_lab.telling.narrative import shortened

COMMAND = "a command to MariaDB"
NO_SERVER = "a command to MariaDB, and the explorer was given no MariaDB server"
TO_OTHERS = "give it the address: database='mysql://…' (an embedded one: database='mariadb')"
NO_GATE = "no gate for this command of PyMySQL (number {})"
ENDS_IT = "MariaDB would end an idle session by its {limit} of {seconds} s, and no schedule does so"
NO_LIMIT = (
    "open the connection without that limit; what becomes of an ended transaction is tried by crashes=1"
)
SLEEPS_UNHEARD = (
    "its connection has a read_timeout of {reads:g} s, and sleeps in MariaDB for {sleeps:g} s: when the server learns "
    "that the client is gone is open"
)
READS_ON = "make that connection with read_timeout=None for this trial"
#: isolation levels under which a plain SELECT meets what others have not committed
MEETS = ("SERIALIZABLE", "READ-UNCOMMITTED")
#: … and under which an inner SELECT locks nothing
WEAK = ("READ-COMMITTED", "READ-UNCOMMITTED")
#: the server's own words when a command has taken longer than max_statement_time
TAKES_TOO_LONG = (
    "SIGNAL SQLSTATE '70100' SET MYSQL_ERRNO = 1969, "
    "MESSAGE_TEXT = 'Query execution was interrupted (max_statement_time exceeded)'"
)
#: what a client sends to clean up
_CLEANS = (driver.ROLLBACK, driver.AUTOCOMMIT)


def gated(name: str) -> Callable[..., Any]:
    """The method of a Connection that is called `name`, as a step."""
    plain = driver.methods[name]

    def method(connection: Any, *args: Any, **keywords: Any) -> Any:
        place = here()
        if place is None:
            if Active.run is not None:
                Active.bypassed(COMMAND)
            if asks_a_server() and args:
                _note_clock(args[0])
            return plain(connection, *args, **keywords)
        return place.run.live(place.task, asking(place, connection, name, *args, **keywords))

    return method


def _note_clock(sent: Any) -> None:
    """Does an invariant's command ask for the time, itself or by a view?"""
    text = sent.decode(errors="replace") if isinstance(sent, bytes) else str(sent)
    server = Active.servers.get(MARIADB)
    inside = isinstance(server, MariaDBServer) and server.unseen.asks_inside(text)
    InvariantClock.note_command(text, clock_words.asks(text) or inside)


def asking(place: Here, connection: Any, name: str, *args: Any, **keywords: Any) -> Standing:
    """What this method of the connection sends, as steps. Returns what the method does."""
    run, task = place.run, place.task
    if MARIADB not in run.servers:
        run.error = Broken(NO_SERVER, TO_OTHERS)
        halt(task)
    _known(run, task, connection)
    given = args[0] if args else keywords.get("sql", name)
    text = given.decode() if isinstance(given, bytes) else str(given)
    if run.ending:
        return _unwind(place, connection, name, text)
    if name in (driver.COMMIT, driver.ROLLBACK) and not driver.inside(connection):
        with beside():
            return driver.methods[name](connection, *args, **keywords)
    wishes = driver.wishes_autocommit(connection) if name == driver.AUTOCOMMIT else None
    text = text_of(name, text, wishes)
    unbuffered = bool(keywords.get("unbuffered", len(args) > 1 and args[1]))
    server = server_of(run)
    if error := (
        beyond(text, unbuffered)
        or (refused(text) if server.makes(text) else None)
        or _is_ended(connection)
        or server.out_of_sight.of_another(driver.database(connection))
        or _inside(server, text)
        or _begins_to_ask(server, text, run.looks)
    ):
        run.error = error
        raise pymysql.NotSupportedError(str(error))
    inside = driver.inside(connection) or not driver.commits_by_itself(connection)
    if _begins_to_meet(server, text, inside):
        run.error = WritesByReading()
        halt(task)
    if inside or name not in (driver.QUERY, driver.WARNINGS):
        return (yield from _sent(place, connection, name, text))
    return (yield from _alone(place, connection, name, text))


def _inside(server: MariaDBServer, text: str) -> Broken | None:
    """Does the command use something in which the server's own clock decides, where no gate sees it, or chance?"""
    if chooses := random_commands.of_sql(text):
        return chooses
    if unseen := server.out_of_sight.named_in(text):
        return unseen
    found = server.clock_inside(text)
    return (
        Broken(f"{NO_MARIADB_CLOCK} (inside of {found}, in {shortened(text, 80)})", IN_THE_COMMAND)
        if found
        else None
    )


def _is_ended(connection: Any) -> Broken | None:
    """Would the server end this session when it stands idle?"""
    if limit := session_of(connection).ends_by:
        return Broken(ENDS_IT.format(limit=limit[0], seconds=limit[1]), NO_LIMIT)
    return None


def _begins_to_ask(server: MariaDBServer, text: str, they_look: bool) -> Broken | None:
    """Is this the first command in which the server's clock decides? Then all begins anew, with a virtual one. If
    workers look at their own clocks, they may also compare what a DEFAULT has written by the server's."""
    by = server.unseen.compares_default(text) or (they_look and server.unseen.told_by_default(text))
    if by and server.looks.watched:  # nobody else could begin again
        return ClockInside(by, text, with_another=not (they_look or clock_words.asks(text)))
    found = server.by_the_clock(text) and server.becomes_timed(text)
    return ClockDecides("MariaDB") if found else None


def _begins_to_meet(server: MariaDBServer, text: str, inside: bool) -> bool:
    """Is this the first command to which a write under way makes a difference? `inside`: of a transaction."""
    op = describe(text, inside)
    if op.local or text in ENDS:
        return False
    meets, numbers = server.answers.meets, not inside and server.draws(op)
    return server.compound.begins(text, not op.reads, strict=meets, numbers=numbers)


def _alone(place: Here, connection: Any, name: str, text: str) -> Standing:
    """A command outside of a transaction. One that reads and writes is explored as the transaction that it is."""
    run, session = place.run, session_of(connection)
    if error := outside_of_a_transaction(text, session.alone):
        run.error = error
        raise pymysql.NotSupportedError(str(error))
    session.alone = text in server_of(run).compound and not describe(text, inside=False).reads
    if not session.alone:
        found = yield from _sent(place, connection, name, text)
        if server_of(run).compound.changed(driver.written(connection)):
            run.error = WritesByReading()
            halt(place.task)
        return found
    yield from _sent(place, connection, driver.BEGIN, "BEGIN", alone=True)
    try:
        found = yield from _sent(place, connection, driver.QUERY, text, alone=True)
    except pymysql.MySQLError:
        if driver.is_open(connection) and driver.inside(connection):
            yield from _sent(place, connection, driver.ROLLBACK, "ROLLBACK", alone=True)
        raise
    with driver.keeps_answer(connection):
        yield from _sent(place, connection, driver.COMMIT, "COMMIT", alone=True)
    return found


def _sent(place: Here, connection: Any, name: str, text: str, alone: bool = False) -> Standing:
    """A command. `alone`: as in Op."""
    run, task, server = place.run, place.task, server_of(place.run)
    session = session_of(connection)
    seconds = sleeps(text)
    if seconds is not None and (session.patience.statement or inf) <= seconds:
        seconds, text = session.patience.statement, TAKES_TOO_LONG
    if seconds is not None and (session.reads or inf) <= seconds:
        run.error = Broken(SLEEPS_UNHEARD.format(reads=session.reads, sleeps=seconds), READS_ON)
        halt(task)
    if seconds is not None:  # in virtual time, with all that its session holds
        yield from run.waiting(task, NOBODY, seconds, f"sleep in MariaDB {seconds:g} s")
    op, text = describe(text, driver.inside(connection), server.by_the_clock(text)), without_sleep(text)
    op.alone, op.lasts = alone, server.unseen.remembers(text)
    known = MariadbCommand(session.who[1:], op, name, text, driver.commits_by_itself(connection))
    event = run.arrives(task, known)
    try:
        return (yield from execute(run, task, connection, event))
    except ReadTimedOut:
        raise unheard.leave(run, task, connection, event) from None
    except Halt:  # no thread may leave its session inside a transaction
        server.clear(connection)
        raise


def send(connection: Any, command: int, sql: Any) -> Any:
    """Everything that PyMySQL sends. What a step sends, it has sent already."""
    if driver.has_asked(connection):
        return None
    place = here()
    if place is None or place.run.ending:
        return driver.send(connection, command, sql)
    place.run.error = Broken(NO_GATE.format(command), BY_EXECUTE)
    return halt(place.task)


def _known(run: Run, task: Task, connection: Any) -> None:
    """Name the connection by the thread that uses it, and by its place among the connections of this thread."""
    if not hasattr(connection, "explorer_session"):
        with beside():
            connection.explorer_session = look(driver, connection)
    server, session = server_of(run), session_of(connection)
    with beside():
        session.begins_at(driver, connection, server.level)
    server.answers.strict |= session.isolated != "READ-COMMITTED"
    server.answers.meets |= session.isolated in MEETS
    server.answers.weak |= session.isolated in WEAK
    sessions, used = (
        task.worker.sessions.setdefault(MARIADB, {}),
        task.uses.setdefault(MARIADB, []),
    )
    if sessions.get(connection, task) is not task and run.recorder:
        run.recorder.opaque("two threads use one session of MariaDB")
    if connection not in used:
        only_owner(run, task, MARIADB, connection)
        used.append(connection)
    sessions[connection] = task
    session_of(connection).who = task.worker.index, task.number, used.index(connection)


def _unwind(place: Here, connection: Any, name: str, text: str) -> Any:
    """The run is over: only a client's own cleaning up passes, and that was done already."""
    server_of(place.run).clear(connection)
    if name in _CLEANS or text.upper().startswith("ROLLBACK"):
        return None
    return halt(place.task)


def connect(connection: Any, *args: Any, **keywords: Any) -> Any:
    """The handshake is not a step, and no clock that it looks at is the worker's. If the explorer was given no MariaDB,
    its address is one like any other (gates/outside.py)."""
    place = here()
    if place is not None and MARIADB not in place.run.servers:
        driver.connect(connection, *args, **keywords)
        return
    if place is not None and place.run.recorder and hasattr(connection, "explorer_session"):
        place.run.recorder.opaque("a connection to MariaDB was made again")
    with connecting(), beside():
        driver.connect(connection, *args, **keywords)
    made().append(driver.number(connection))


def close(connection: Any) -> None:
    """The client does not wait for it, but the server ends the session at once. close() hears of no error."""
    place = here()
    if place is not None and MARIADB in place.run.servers and hasattr(connection, "explorer_session"):
        with suppress(pymysql.MySQLError):
            for name, text in () if place.run.ending else sent_by_the_end(connection):
                place.run.live(place.task, asking(place, connection, name, text))
        if place.run.recorder and session_of(connection).status(driver, connection).matters:
            place.run.recorder.opaque("a session of MariaDB was closed that held something")
        server_of(place.run).end_sessions([connection])
    driver.close(connection)


def ping(connection: Any, *args: Any, **keywords: Any) -> None:
    """No other worker sees a ping."""
    with beside():
        driver.ping(connection, *args, **keywords)


def install(patches: Patches) -> None:
    driver.LIBRARY.check()
    made().extend(driver.number(each) for each in existing(Connection) if driver.is_open(each))
    for name in driver.methods:
        patches.method(Connection, name, gated(name))
    patches.method(Connection, driver.SEND, send)
    patches.method(Connection, "ping", ping)
    patches.method(Connection, "connect", connect)
    patches.method(Connection, "close", close)
