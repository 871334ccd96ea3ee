"""Times that a database's own clock has written, and who may compare them. Then that clock has to be virtual.

    A: BEGIN                                            made timestamptz DEFAULT now(): when the transaction began
    B: BEGIN   INSERT INTO event …   COMMIT
    A: INSERT INTO event …   COMMIT                     A's row was there after B's, and says that it is older

By its own clock, BEGIN is no decision, and the order in which two have begun is always the same. No time passes for it
while a worker sleeps. That is good enough where such a time is only written down. It is not if a command compares it
(`WHERE made > …`), if a worker is told two of them, or one and looks at its own clock, or if an invariant names it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from lost_update_lab.gates.invariant_clock import InvariantClock
from lost_update_lab.model.epoch import Epoch
from lost_update_lab.model.errors import ClockInside
from lost_update_lab.scenarios.serial import Serial, SerialOrders
from lost_update_lab.servers.filled_columns import FilledColumns
from lost_update_lab.servers.mariadb.server import MariaDBServer
from lost_update_lab.servers.postgres.server import PostgresServer
from lost_update_lab.snapshot.by_server import ByServer
from lost_update_lab.under_test.fresh import NOW, TIME, constants, shows_clock

#: by what it is compared, and in which command
Compared = tuple[str, str]
#: between a moment of the schedule and the time that shows it, in seconds
_NEAR = 0.002


def compared_times(serial: SerialOrders, by_server: ByServer) -> ClockInside | None:
    """May a time be compared that the database's own clock has written? `by_server`: what it writes by itself."""
    server = next(
        (each for each in serial.system.servers.values() if isinstance(each, PostgresServer | MariaDBServer)),
        None,
    )
    if not server:
        return None
    columns = server.unseen.seen_of(set(_written(serial, by_server)))
    if found := next(_compared(serial, columns), None) or _two_told(serial, by_server):
        return ClockInside(*found, with_another=True)
    found = _may_be_compared(serial, server, columns, by_server)
    return ClockInside(*found) if found else None


def _written(serial: SerialOrders, by_server: ByServer) -> Iterator[tuple[str, str]]:
    """The columns, each with its table, into which it has written in a serial order."""
    for each in serial.all():
        for table, rows in each.left.changed.items():
            for row in rows:
                for name, value in row.items():
                    if value == NOW and (table.title, name) in by_server.columns:
                        yield table.name.lower(), name.lower()


def _compared(serial: SerialOrders, columns: FilledColumns) -> Iterator[Compared]:
    for text in _commands(serial):
        if by := columns.compared_in(text):
            yield by, text
    for text in InvariantClock.commands:
        if by := columns.told_in(text):
            yield by, text


def _may_be_compared(
    serial: SerialOrders,
    server: PostgresServer | MariaDBServer,
    columns: FilledColumns,
    by_server: ByServer,
) -> Compared | None:
    """By a worker: with its own clock, or with another such time, if time passes. What tells it need not name the
    column (`SELECT h FROM hold h`), and then the reply shows it."""
    if not (serial.looks or any(each.passed for each in serial.all())):
        return None
    for text in _commands(serial):
        if by := server.unseen.told_by_default(text) or columns.told_in(text):
            return by, text
    for each in serial.all():
        for step in each.steps:
            if time := next(_of_its_clock(step.reply, each, by_server, serial.system.known), ""):
                return time, step.command
    return None


def _commands(serial: SerialOrders) -> list[str]:
    return list(dict.fromkeys(step.command for each in serial.all() for step in each.steps))


def _two_told(serial: SerialOrders, by_server: ByServer) -> Compared | None:
    """Is one worker told two of them? Or an invariant, by the workers' results?"""
    known = serial.system.known
    for each in serial.all():
        told = defaultdict[str, set[str]](set)
        for step in each.steps:
            told[step.task].update(_of_its_clock(step.reply, each, by_server, known))
            if len(told[step.task]) > 1:
                return "two times", step.command
        results = " ".join(map(_as_text, each.observed.results)) if serial.system.scenario.invariants else ""
        if len(found := set(_of_its_clock(results, each, by_server, known))) > 1:
            return "two results", " and ".join(sorted(found))
    return None


def _as_text(result: Any) -> str:
    if isinstance(result, Mapping):
        result = list(result.values())
    if isinstance(result, float) and shows_clock(result):
        result = datetime.fromtimestamp(result, UTC)
    return " ".join(map(_as_text, result)) if isinstance(result, list | tuple | set) else str(result)


def _of_its_clock(reply: str, serial: Serial, by_server: ByServer, known: Collection[str]) -> Iterator[str]:
    shown = {0, *(step.at / 1e6 for step in serial.steps)}
    for time in TIME.findall(reply):
        try:
            at = datetime.fromisoformat(time)
        except ValueError:
            continue
        after = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - Epoch.shows
        virtual = any(0 <= after - each < _NEAR for each in shown)
        if by_server.has_written("timestamp", at) and not virtual and not constants([time]) <= {*known}:
            yield time
