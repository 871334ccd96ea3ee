"""Two looks at a clock would see the same time, one writes it, and a command orders rows by it, or looks for it.

    A: INSERT … 12:00:01   COMMIT                   B: INSERT … 12:00:01   COMMIT
    C: SELECT … ORDER BY made DESC LIMIT 1          A's row or B's: that is open

    A: looks: 12:00:01     B: looks: 12:00:01       B: UPDATE … SET at = 12:00:01 WHERE at <= 12:00:01
    A: UPDATE … SET at = 12:00:01 WHERE at <= 12:00:01: the last write wins, and A's was the earlier one

    A: INSERT … 12:00:01   looks: 12:00:01          A: DELETE … WHERE at < 12:00:01: its own row was older

The workers' clocks stand still while no time passes, where real ones hardly show one time twice. So in such a case all
begins again, each look at a clock is a decision of its own, and shows 1 µs more than the one before
(World.distinct_times). That makes more states, so it is done only then. What is a tie even so (a time that is cut to
the second) is told in a note.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from lost_update_lab.scenarios.serial import Serial
from lost_update_lab.servers.compound import words_of
from lost_update_lab.servers.mariadb import clock_words as of_mariadb
from lost_update_lab.servers.postgres import clock_words as of_postgres
from lost_update_lab.snapshot.catalogue import Table
from lost_update_lab.under_test.fresh import NOW, TIME, is_now, unix_times

TIE = (
    "two operations, one after the other, have written the same time (one that is cut to the second?), and a command "
    "orders rows by {}, or looks for it. If that breaks it: order by a number of a sequence, too, or compare a version"
)
OLDER = (
    "two operations, one after the other, write the same time (one that is cut to the second?), and a command orders "
    "rows by {}, or looks for it. What the setup wrote may be older than that, and then only a third operation meets "
    "such a time: explore three, or compare a version"
)
#: a time of day without µs
_CUT = re.compile(r":\d\d:\d\d(?:\.\d{1,3})?(?![\d.])")
_WRITE = re.compile(r"\s*(INSERT|UPDATE|MERGE|REPLACE)\b", re.IGNORECASE)
_BY = r"\b(?:ORDER\s+BY|WHERE|MAX\s*\(|MIN\s*\()[^;]*\b{}\b"
_SELECTS = r"\s*SELECT\b(?:[^;]*?\b{}\b|\s+\*)"
#: which thread, or coroutine, has used which times
Uses = Iterable[tuple[str, Iterable[str]]]


def may_tie(
    orders: Sequence[Serial], tables: Collection[Table], looks: bool, asked: Iterable[str] = ()
) -> bool:
    """`orders`: the serial ones. `looks`: workers look at their wall clocks. Then they may compare in Python what they
    have selected, or read from Redis. `asked`: the commands of the invariants, which may compare as well."""
    names = sorted({*_times(tables), *(name for serial in orders for name in _hold_now(serial))})
    by_invariants = [name for name in names if any(name.lower() in words_of(text) for text in asked)]
    return any(
        _may_tie(serial, names, looks) or (by_invariants and _is_written(serial, by_invariants))
        for serial in orders
    )


def asks_the_server(orders: Sequence[Serial]) -> bool:
    """Does a command ask for the server's clock, if only to write down what it shows?"""
    return any(_asks(step.command) for serial in orders for step in serial.steps)


def ties(orders: Sequence[Serial], tables: Collection[Table], sentence: str = TIE) -> Iterator[str]:
    """What is a tie even if no clock is shown the same time twice. Once at most."""
    for serial in orders:
        by = _named(_BY, _times(tables), [step.command for step in serial.steps])
        by = [name for name in by if _is_cut(serial, name)]
        if by and _meet((step.task, _stamps(step.command)) for step in serial.steps):
            yield sentence.format(" and ".join(by))
            return


def _stamps(command: str) -> Sequence[str]:
    """The times that it writes, the server's own too."""
    return [*_written(command), NOW] if _WRITE.match(command) and _asks(command) else _written(command)


def _is_cut(serial: Serial, column: str) -> bool:
    """Does a row hold a time of the run itself there that is cut, as no look at a clock but the first one is?"""
    held = (str(row.get(column)) for row in chain.from_iterable(serial.left.changed.values()))
    return any(_CUT.search(time) and is_now(time, serial.passed) for time in held)


def _may_tie(serial: Serial, names: Sequence[str], looks: bool) -> bool:
    commands, again = [step.command for step in serial.steps], _looks_again(serial)
    compared, by = _named(_SELECTS, names, commands) if looks else [], _named(_BY, names, commands)
    written = _is_written(serial, names)
    if (compared or by) and _meet(_uses(serial, compared, written), again):
        return True
    if any(_comes_twice(serial, name) for name in by):
        return True
    return looks and _meet(_in_redis(serial), again)


def _in_redis(serial: Serial) -> Uses:
    """What is read there may be compared in Python."""
    passed = serial.passed
    for step in serial.steps:
        yield step.task, {*unix_times(step.command, passed), *unix_times(step.reply, passed)}


def _looks_again(serial: Serial) -> Collection[str]:
    """Who looks at a clock more than once, its own or the server's."""
    asks = Counter(step.task for step in serial.steps if _asks(step.command))
    return {who for who, count in (asks + Counter(serial.looks_of)).items() if count > 1}


def _asks(command: str) -> bool:
    return of_postgres.asks(command) or of_mariadb.asks(command)


def _uses(serial: Serial, compared: Sequence[str], written: bool) -> Uses:
    """`compared`: columns, in Python; `written`: rows hold the time of their writing, and it may be met."""
    passed = serial.passed
    for step in serial.steps:
        now = any(is_now(time, passed) for time in TIME.findall(step.command))
        used = {time for time in _written(step.command) if not is_now(time, passed)}
        meets = written and (now or _asks(step.command) or _named(_SELECTS, compared, [step.command]))
        yield step.task, used | {NOW} if meets or (now and _WRITE.match(step.command)) else used


def _written(command: str) -> Sequence[str]:
    return TIME.findall(command) if _WRITE.match(command) else []


def _meet(uses: Uses, again: Collection[str] = ()) -> bool:
    """Does the same time occur in the commands of two threads or coroutines? Or in two of one that looks at a clock
    `again`: the one it has written would be over by then."""
    users = defaultdict[str, list[str]](list)
    for who, times in uses:
        for time in {*times}:
            users[time].append(who)
    return any(len({*found}) > 1 or any(found.count(who) > 1 for who in again) for found in users.values())


def _is_written(serial: Serial, columns: Collection[str]) -> bool:
    """Does a row hold the time at which it was written? (One that is yet to come is a lease.)"""
    rows, passed = chain.from_iterable(serial.left.changed.values()), serial.passed
    return any(_now_in(row.get(name), passed) for row in rows for name in columns)


def _comes_twice(serial: Serial, column: str) -> bool:
    """Do two rows of a table hold the same time of their writing? A DEFAULT fills it, and no command shows it."""
    passed = serial.passed
    for rows in serial.left.changed.values():
        found = [str(row.get(column)) for row in rows if _now_in(row.get(column), passed)]
        if len(set(found)) < len(found):
            return True
    return False


def _times(tables: Collection[Table]) -> Sequence[str]:
    """The names of the columns that hold times."""
    return sorted(
        {each.name for of in tables for each in of.columns if each.type.startswith(("time", "date"))}
    )


def _hold_now(serial: Serial) -> Iterator[str]:
    """The columns, of any type, that hold the time of their writing: in a text, or within JSON."""
    for row in chain.from_iterable(serial.left.changed.values()):
        yield from (name for name, value in row.items() if _now_in(value, serial.passed))


def _now_in(value: Any, passed: int) -> bool:
    return any(is_now(time, passed) for time in TIME.findall(str(value)))


def _named(form: str, columns: Iterable[str], commands: Sequence[str]) -> list[str]:
    """The columns that occur in this form in one of the commands."""
    return [name for name in columns if any(map(_pattern(form, name).search, commands))]


def _pattern(form: str, column: str) -> re.Pattern[str]:
    return re.compile(form.format(re.escape(column)), re.IGNORECASE)
