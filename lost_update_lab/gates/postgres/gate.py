"""The gate of psycopg: everything that a Connection sends passes its `wait`, Django's ORM included."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from math import inf
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from lost_update_lab.adapters import psycopg as driver
from lost_update_lab.gates.patch import Patches
from lost_update_lab.gates.postgres import deferred
from lost_update_lab.gates.postgres.by_itself import Sends, begins, by_itself, looks
from lost_update_lab.gates.postgres.command import PostgresCommand
from lost_update_lab.gates.postgres.connections import close, connect, connecting_steps
from lost_update_lab.gates.postgres.describe import (
    NO_POSTGRES_CLOCK,
    beyond,
    by_the_clock,
    describe,
    how_to_send,
    is_remembered,
    text_of,
    under_way,
)
from lost_update_lab.gates.postgres.no_step import may_write, note_clock, published
from lost_update_lab.gates.postgres.step import execute
from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.commands import ENDS, Op
from lost_update_lab.model.effects import NOBODY
from lost_update_lab.model.errors import (
    BY_EXECUTE,
    IN_ONE_DATABASE,
    IN_THE_COMMAND,
    WITHOUT_CHAIN,
    Broken,
    ClockDecides,
    ClockInside,
    WritesByReading,
)
from lost_update_lab.model.workers import Halt, Standing, Task, halt
from lost_update_lab.runs.one_owner import only_owner
from lost_update_lab.runs.place import Active, Here, here
from lost_update_lab.runs.run import Run
from lost_update_lab.schedule import pending
from lost_update_lab.servers import random_commands
from lost_update_lab.servers.postgres import ddl, idle_limits, levels, limits, own_numbers
from lost_update_lab.servers.postgres.clock_words import asks, sleeps, steps_by, virtual
from lost_update_lab.servers.postgres.server import POSTGRES, PostgresServer
from lost_update_lab.servers.postgres.transactions import NOT_STRICT, chains, controls
from lost_update_lab.telling.narrative import shortened

NO_SERVER = "a command to PostgreSQL, and the explorer was given a MariaDB as its database"
ANOTHER_DATABASE = "it uses the database {used}, and the explorer was given {given}"
COMMITS_LATE = (
    "a deferred trigger looks inside of that COMMIT, and no schedule comes between its look and the commit"
)
CURSOR_OUTSIDE = "no gate for a server-side cursor outside of a transaction"
CHAINS = "one command ends a transaction and begins the next, and no schedule comes between"
NO_SERVER_THERE = "let the operations use one database, and give its address"


def wait(connection: psycopg.Connection[Any], gen: Any, *args: Any, **keywords: Any) -> Any:
    place = here()
    if place is None:
        if Active.run is not None:
            Active.bypassed("a command to PostgreSQL")
        note_clock(gen)
        writes = may_write(gen)
        found = driver.wait(connection, gen, *args, **keywords)
        published(connection, writes)
        return found
    return place.run.live(place.task, waiting(place, connection, gen))


def waiting(place: Here, connection: Any, gen: Any) -> Standing:
    """Whatever psycopg sends at a time, as steps."""
    status = connection.pgconn.transaction_status
    name = gen.__name__
    if name in driver.SILENT or (
        name in (driver.COMMIT, driver.ROLLBACK) and status == TransactionStatus.IDLE
    ):
        return driver.wait(connection, gen)
    if POSTGRES not in place.run.servers:
        place.run.error = Broken(NO_SERVER, NO_SERVER_THERE)
        gen.close()
        halt(place.task)
    server = place.run.at_gates[POSTGRES]
    assert isinstance(server, PostgresServer)
    if place.run.ending:
        return _unwind(place, server, connection, gen, name)
    given = driver.given_to(gen)
    kind = driver.kind_of(gen, given)
    if place.run.fed and not place.run.played.plays(connection, kind, given.get("self"), text_of(given)):
        gen.close()
        place.run.refuse(place.task)
    if error := (
        _of_another(server, connection)
        or beyond(kind, given, server.timed)
        or (None if server.may_make is None else ddl.beyond(text_of(given)))
        or _inside(server, given, place.run.looks and server.may_make is not None)
        or _begins_to_ask(server, given)
    ):
        place.run.error = error
        gen.close()
        raise psycopg.NotSupportedError(str(error))
    try:
        return (yield from _sent(place.run, place.task, server, connection, gen, kind, given))
    except Halt:  # no thread may leave its session inside a transaction
        _end_session(place, server, connection)
        gen.close()
        raise
    finally:
        connection.explorer_sends = None


def _of_another(server: PostgresServer, connection: Any) -> Broken | None:
    """Rows in another database stay there from schedule to schedule, and are no part of a state."""
    if connection.closed:
        return None
    used, given = connection.pgconn.db, server.admin.pgconn.db
    if used == given:
        return None
    return Broken(ANOTHER_DATABASE.format(used=used.decode(), given=given.decode()), IN_ONE_DATABASE)


def _inside(server: PostgresServer, given: dict[str, Any], they_look: bool) -> Broken | None:
    """Does the command use something in which the server's own clock decides, where no gate sees it, or chance? If
    workers look at their own clocks, they may also compare what a DEFAULT has written by the server's. (The lab's own
    strategies do not: whoever explores them knows that.)"""
    text = text_of(given)
    if chooses := random_commands.of_sql(text):
        return chooses
    hidden = server.unseen.number_in(text) or server.unseen.at_work_in(text)
    if found := own_numbers.beyond(text) or server.looks.limited(text) or hidden:
        return found
    if clock := server.clock_inside(text, by_the_clock(text, server.timed)):
        if server.may_make is not None:
            return ClockInside(clock, text, with_another=not asks(text))
        return Broken(f"{NO_POSTGRES_CLOCK} (inside of {clock}, in {shortened(text, 80)})", IN_THE_COMMAND)
    told = they_look and server.unseen.told_by_default(text)
    return ClockInside(told, text) if told else None


def _begins_to_ask(server: PostgresServer, given: dict[str, Any]) -> ClockDecides | None:
    """Is this the first command in which the server's clock decides? Then all begins anew, with a virtual one. Or the
    first that compares one that is rounded? By the real one, two times that are cut are the same or not by chance."""
    text = text_of(given)
    rounded = steps_by(text)
    decides = by_the_clock(text, timed=False) or (
        not server.timed and (server.unseen.clocks.cuts(text) or server.unseen.clocks.stamped.meet(text))
    )
    if (server.timed and rounded <= server.steps_by) or not decides:
        return None
    server.steps_by = max(rounded, server.steps_by)
    server.becomes_timed()
    return ClockDecides("PostgreSQL")


def _sent(
    run: Run,
    task: Task,
    server: PostgresServer,
    connection: psycopg.Connection[Any],
    gen: Any,
    kind: str,
    given: dict[str, Any],
) -> Standing:
    """A command. `kind`: the name of psycopg's generator; `given`: its arguments."""
    idle = connection.pgconn.transaction_status == TransactionStatus.IDLE
    known: Any = connection
    known.explorer_isolation, name = server.isolation(connection), _name_of(run, task, connection)
    known.explorer_who = task.worker.index, *name
    op = _described(server, connection, kind, given, idle)
    if not run.fed:
        levels.begins_at(connection, server.level, op.text)
    if found := _may_be_ended(run, server, connection, idle):
        gen.close()
        raise found
    waits = not idle and getattr(known, "explorer_deferred", False)
    known.explorer_deferred = server.defers(op) or waits
    seconds = sleeps(text_of(given), given.get("params"))
    if seconds is not None or (op.timed and asks(text_of(given))):
        server.shadow()
        gen, given = driver.asked_again(gen, given, virtual(text_of(given)))
    sends = kind in (driver.EXECUTE, driver.STATEMENT)
    outside = idle and connection.autocommit
    alone = op.alone = outside and not op.reads and op.text in server.compound and not controls(op.text)
    if alone and not sends:
        gen.close()
        raise Broken(f"{CURSOR_OUTSIDE} ({shortened(op.text, 80)})", BY_EXECUTE)
    if found := _met(server, connection, op, outside):
        gen.close()
        raise found
    if sends and idle and (alone or not connection.autocommit):
        text = b"BEGIN" if alone else driver.begin_command(connection)
        yield from begins(run, task, connection, name, text, alone)
    known.explorer_sends = Sends(task, partial(under_way, connection, op, kind, given), alone)
    if seconds is not None:
        gen, given = yield from _sleep(run, task, connection, gen, given, seconds)
    steps = _commits if deferred.waits_for(connection, op) else _step
    return (yield from steps(run, task, connection, name, op, gen, kind, given))


def _described(server: PostgresServer, connection: Any, kind: str, given: dict[str, Any], idle: bool) -> Op:
    op = describe(kind, given, idle, server.timed)
    op.reads = op.reads and (op.local or not server.unseen.calls(op.text))
    op.timed |= server.timed and server.unseen.clocks.virtual_inside(op.text, op.reads)
    op.lasts = kind == driver.DECLARE or is_remembered(server, connection, op)
    return op


def _may_be_ended(run: Run, server: PostgresServer, connection: Any, idle: bool) -> Broken | None:
    """Does PostgreSQL end a session that stands still, or would it have ended this one?"""
    if idle and idle_limits.begins_at(connection):
        server.answers.close()  # the time counts, of which the memoised server knows nothing
        if run.bounds.allow((), Fault.PAUSE, 1):
            return idle_limits.of_a_pause(connection)
    return None


def _step(
    run: Run,
    task: Task,
    connection: Any,
    name: tuple[int, int],
    op: Op,
    gen: Any,
    kind: str,
    given: dict[str, Any],
) -> Standing:
    source = given.get("self")
    tells = hasattr(source, "pgresult")
    event = run.arrives(task, PostgresCommand(name, op, connection.explorer_isolation, tells=tells))
    results = partial(driver.results_of, source) if tells else None
    try:
        steps = execute(run, task, connection, op, gen, results)
        return (yield from (by_itself(run, task, connection, name, op, steps) if op.alone else steps))
    finally:
        if run.recorder:
            event.send = event.send or how_to_send(connection, op, kind, given)


def _commits(
    run: Run, task: Task, connection: Any, name: tuple[int, int], op: Op, gen: Any, *of: Any
) -> Standing:
    """A COMMIT for which a deferred trigger waits. Where that refuses, the server rolls back instead."""
    sends = connection.explorer_sends
    refused = yield from looks(run, task, connection, name)
    connection.explorer_sends = sends
    op = Op(POSTGRES, "ROLLBACK", b"ROLLBACK") if refused else op
    found = yield from _step(run, task, connection, name, op, gen, *of)
    if refused:
        raise refused
    return found


def _met(server: PostgresServer, connection: Any, op: Op, outside: bool) -> Broken | None:
    """The reason why the search cannot go on as it is."""
    if chains(op.text):
        return Broken(f"{CHAINS} ({shortened(op.text, 80)})", WITHOUT_CHAIN)
    if connection.explorer_deferred and deferred.commits_inside(op.text):
        return Broken(f"{COMMITS_LATE} ({shortened(op.text, 80)})", BY_EXECUTE)
    return WritesByReading() if _begins_to_meet(server, connection, op, outside) else None


def _begins_to_meet(server: PostgresServer, connection: Any, op: Op, outside: bool) -> bool:
    """Is this the first command to which a write under way makes a difference? `outside`: of a transaction."""
    if op.local or op.text in ENDS:
        return False
    strict = connection.explorer_isolation not in NOT_STRICT
    return server.compound.begins(op.text, not op.reads, strict, outside and server.answers.counts(op))


def _sleep(
    run: Run,
    task: Task,
    connection: psycopg.Connection[Any],
    gen: Any,
    given: dict[str, Any],
    seconds: float,
) -> Generator[None, None, tuple[Any, dict[str, Any]]]:
    """The session sleeps in virtual time, with all that it holds. What it is asked then takes no time, or says that it
    took too long."""
    if run.fed and limits.are_set(connection):
        run.refuse(task)
    most = limits.now(connection).statement / 1000 or inf
    yield from run.waiting(task, NOBODY, min(seconds, most), f"sleep in PostgreSQL {seconds:g} s")
    if seconds < most:
        return gen, given
    return driver.asked_again(gen, {**given, "params": None}, "SELECT explorer.takes_too_long()")


def _name_of(run: Run, task: Task, connection: psycopg.Connection[Any]) -> tuple[int, int]:
    """The name of the connection: the thread that uses it, and its place among the connections of this thread."""
    sessions, used = (
        task.worker.sessions.setdefault(POSTGRES, {}),
        task.uses.setdefault(POSTGRES, []),
    )
    if run.fed:
        used += [] if connection in used else [connection]
        return task.number, used.index(connection)
    if sessions.get(connection, task) is not task and run.recorder:
        run.recorder.opaque("two threads use one session of PostgreSQL")
    if connection not in used:
        only_owner(run, task, POSTGRES, connection)
        used.append(connection)
    sessions[connection] = task
    return task.number, used.index(connection)


def _unwind(place: Here, server: PostgresServer, connection: Any, gen: Any, name: str) -> Any:
    """The run is over: only a client's own cleaning up passes."""
    _end_session(place, server, connection)
    if name == driver.ROLLBACK or (name == driver.EXIT and not place.run.fed):
        return driver.wait(connection, gen)
    gen.close()
    return halt(place.task)


def _end_session(place: Here, server: PostgresServer, connection: Any) -> None:
    if not place.run.fed:
        server.end_sessions([connection])
    elif played := getattr(connection, "explorer_played", None):
        played.becomes_idle()


def cancel(connection: Any, place: Here) -> None:
    """Another thread, or coroutine, asks the server to cancel what is under way on this connection."""
    if place.run.fed:
        place.run.refuse(place.task)
    sends: Sends | None = getattr(connection, "explorer_sends", None)
    if driver.may_cancel(connection) and sends and not place.run.ending:
        if place.run.recorder:
            place.run.recorder.opaque("a command that is cancelled")
        pending.give_up(place.run, sends.task)


def _cancel(connection: Any) -> Any:
    place = here()
    return cancel(connection, place) if place else driver.cancel(connection)


def _cancel_safe(connection: Any, **keywords: Any) -> Any:
    place = here()
    return cancel(connection, place) if place else driver.cancel_safe(connection, **keywords)


def install(patches: Patches) -> None:
    driver.LIBRARY.check()
    patches.method(psycopg.Connection, "wait", wait)
    patches.method(psycopg.BaseConnection, "cancel", _cancel)
    patches.method(psycopg.Connection, "cancel_safe", _cancel_safe)
    patches.method(psycopg.Connection, "connect", classmethod(connect))
    patches.method(psycopg.BaseConnection, driver.CONNECTING, classmethod(connecting_steps))
    patches.method(psycopg.Connection, "close", close)
    patches.everywhere(psycopg.connect, partial(connect, psycopg.Connection))
