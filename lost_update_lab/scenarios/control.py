"""The must-fail control: without the user's locks the same scenario has to break, or the invariant cannot tell.

Where there are no locks to remove, a note says what the invariant allows.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import psycopg
from redis import asyncio
from redis.connection import AbstractConnection

from lost_update_lab.adapters import psycopg as driver
from lost_update_lab.gates.patch import Patches
from lost_update_lab.gates.recorded_calls import RecordedCalls
from lost_update_lab.model.errors import Broken
from lost_update_lab.runs.place import here
from lost_update_lab.scenarios.exploration import Opened
from lost_update_lab.scenarios.judging import Judge
from lost_update_lab.scenarios.protection import ISOLATION, taken_if_free, without, without_level
from lost_update_lab.scenarios.schedule import told
from lost_update_lab.scenarios.serial import SerialOrders
from lost_update_lab.search.search import Search
from lost_update_lab.under_test.operations import BREACHES, VIOLATED

NOT_NEEDED = "without {}, too, no order breaks it: something else protects it, or these locks are not needed"
PREVENTS = "without {}, no order breaks it, but in some the database aborts {} (deadlock), as in none with these locks"
ALLOWED = (
    "the invariant holds, and yet an order comes to what no serial order does: {}. If that must not be, leave the "
    "invariant out, and the explorer shows that order"
)


class Unlocked:
    """Removes the workers' locks, and remembers which."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def install(self, patches: Patches) -> None:
        for cursor_of in (psycopg.Cursor, psycopg.AsyncCursor):
            self._cursors(patches, cursor_of)
        for begins in (psycopg.Connection, psycopg.AsyncConnection):
            self._transactions(patches, begins)
        for sends in (AbstractConnection, asyncio.connection.AbstractConnection):
            self._connections(patches, sends)
        for name in ("pymysql", "aiomysql"):
            if client := sys.modules.get(name):
                self._mariadb(patches, client.Connection)

    def _cursors(self, patches: Patches, cursor_of: Any) -> None:
        execute = cursor_of.execute

        def unlocked(cursor: Any, query: Any, *args: Any, **keywords: Any) -> Any:
            return execute(cursor, self._sql(query) if here() else query, *args, **keywords)

        patches.method(cursor_of, "execute", unlocked)

    def _transactions(self, patches: Patches, connection_of: Any) -> None:
        begin = getattr(connection_of, driver.BEGIN)

        def begun(connection: Any) -> bytes:
            text: bytes = begin(connection)
            plain = without_level(text) if here() else text
            if plain != text:
                self.taken.add(ISOLATION)
            return plain

        patches.method(connection_of, driver.BEGIN, begun)

    def _connections(self, patches: Patches, connection_of: Any) -> None:
        send, pack_all = connection_of.send_command, connection_of.pack_commands

        def sent(connection: Any, *words: Any, **keywords: Any) -> Any:
            return send(connection, *(self._redis(words) if here() else words), **keywords)

        def all_packed(connection: Any, commands: Any) -> Any:
            return pack_all(connection, [self._redis(each) for each in commands] if here() else commands)

        patches.method(connection_of, "send_command", sent)
        patches.method(connection_of, "pack_commands", all_packed)

    def _mariadb(self, patches: Patches, connection_of: Any) -> None:
        plain = connection_of.query

        def queried(connection: Any, text: Any, *args: Any, **keywords: Any) -> Any:
            return plain(connection, self._sql(text, True) if here() else text, *args, **keywords)

        patches.method(connection_of, "query", queried)

    def _sql(self, query: Any, on_mariadb: bool = False) -> Any:
        if not isinstance(query, str | bytes):
            return query
        text = query.decode() if isinstance(query, bytes) else query
        plain, taken = without(text, on_mariadb)
        self.taken.update(taken)
        return query if not taken else plain.encode() if isinstance(query, bytes) else plain

    def _redis(self, words: Any) -> Any:
        plain, what = taken_if_free(words)
        self.taken.update(filter(None, [what]))
        return plain


class UntilBroken(Search):
    """Ends with the first schedule that comes to one of the `wanted` words."""

    wanted: Collection[str] = BREACHES

    def _backtrack(self) -> bool:
        return not self.result.words.keys() & set(self.wanted) and super()._backtrack()


@dataclass(frozen=True, slots=True)
class Control:
    """`cannot_tell`: without the locks something is left that no serial order leaves, and the invariant holds all the
    same. An answer alone is no loss: optimistic code says "try again" then."""

    note: str = ""
    cannot_tell: bool = False


def control(opened: Opened) -> Control:
    """Run the scenario without its locks. It breaks, or the result says why it does not."""
    try:
        return _controlled(opened)
    except Broken as error:
        return Control(f"the control without the locks could not be executed: {error}")


def _controlled(opened: Opened) -> Control:
    without = _without_locks(opened, BREACHES)
    if without.breaks:
        return Control()
    plain = _without_invariants(opened)
    if not without.locks:
        allowed = _allowed(plain) if plain and not opened.scenario.redelivered else ()
        return Control(ALLOWED.format("; ".join(allowed))) if allowed else Control()
    if plain and _without_locks(plain, (VIOLATED,), answers=False).breaks:
        why = f"it holds without {without.locks}, too, even when the outcome matches no serial order"
        return Control(f"the invariant cannot tell: {why}", cannot_tell=True)
    if aborted := without.aborted - opened.judge.aborted:
        return Control(PREVENTS.format(without.locks, " and ".join(sorted(aborted))))
    may_vanish = opened.scenario.invariants or opened.scenario.after_a_crash
    if RecordedCalls.made and may_vanish:  # calls may be what the locks are for
        return Control()
    return Control(NOT_NEEDED.format(without.locks))


def _without_invariants(opened: Opened) -> Opened | None:
    """None: it has none, or a worker alone, which loses no update."""
    if not opened.scenario.invariants or len(opened.scenario.callers) < 2:
        return None
    plain = replace(opened.scenario, invariants=(), always=())
    return replace(opened, scenario=plain, judge=Judge(plain))


def _allowed(opened: Opened) -> Sequence[str]:
    """What an order without any fault comes to, as no serial order does. (): every one comes to what one does."""
    opened.scenario = replace(opened.scenario, faults=0, most=(), kinds=frozenset())
    with opened.harness() as (harness, system):
        opened.compare_with(SerialOrders(harness, system))
        search = UntilBroken(harness)
        search.wanted = (VIOLATED,)
        if not (found := search.explore().smallest(VIOLATED)):
            return ()
        return told(harness, system, search.calibrated, found.choices).sentences[1:]


class _WithoutLocks(NamedTuple):
    """`locks`: what was removed, "" if there is nothing. `breaks`: a schedule without it comes to one of the words, or
    may. `aborted`: as in Judge."""

    locks: str
    breaks: bool
    aborted: Set[str] = frozenset()


def _without_locks(opened: Opened, words: Collection[str], answers: bool = True) -> _WithoutLocks:
    """Right is what the serial orders with the locks have come to; where these were not run, those without them."""
    unlocked, orders = Unlocked(), opened.judge.serial
    with ExitStack() as stack:
        stack.callback(setattr, opened, "judge", opened.judge)
        # its notes are none on the scenario itself
        opened.judge = judge = Judge(opened.scenario, answers)
        judge.serial = None if opened.scenario.invariants else orders
        harness, system = stack.enter_context(opened.harness([unlocked.install]))
        system.exact = False  # the keys of locks have leases, and hold anything without those
        own = SerialOrders(harness, system)
        own.all()
        if not unlocked.taken:
            return _WithoutLocks("", False)
        if not (opened.scenario.invariants or orders):
            opened.compare_with(own)
        search = UntilBroken(harness)
        search.wanted = words
        searched = search.explore()
    breaks = bool(searched.words.keys() & set(words)) or not searched.exhausted
    return _WithoutLocks(" and ".join(sorted(unlocked.taken)), breaks, judge.aborted)
