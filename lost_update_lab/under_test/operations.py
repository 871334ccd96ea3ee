"""A scenario as the engine explores it: workers that call the user's functions, and the outcome of each schedule."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import psycopg
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from lost_update_lab.gates.recorded_calls import RecordedCalls
from lost_update_lab.model.errors import Unanswered
from lost_update_lab.model.gaps import Gap, read
from lost_update_lab.model.server import Server
from lost_update_lab.model.system import (
    GAPS,
    LEASES,
    PASSED,
    STALLED,
    UNBROKEN,
    Ending,
    Judgement,
    leased,
    told_of,
)
from lost_update_lab.runs.place import here
from lost_update_lab.servers.mariadb.server import MariaDBServer
from lost_update_lab.servers.postgres.kept import as_new_in_each_run
from lost_update_lab.servers.redis.server import RedisServer
from lost_update_lab.snapshot.by_server import ByServer
from lost_update_lab.snapshot.catalogue import Table
from lost_update_lab.snapshot.redis import RedisSnapshot
from lost_update_lab.snapshot.tables import TableRows, Tables
from lost_update_lab.under_test import mariadb
from lost_update_lab.under_test.drawn import NOT_MEASURED, DrawnNumbers, Place
from lost_update_lab.under_test.false_results import Crashed
from lost_update_lab.under_test.ignored import Ignored
from lost_update_lab.under_test.keys_left import LASTING_KEY, LEASED_KEY, KeysLeft, keys_left, places
from lost_update_lab.under_test.outcome import LeftBehind, Outcome, canonical, key_in
from lost_update_lab.under_test.results import ResultText, raised
from lost_update_lab.under_test.scenario import Operation, Scenario
from lost_update_lab.under_test.server_values import without_server_values
from lost_update_lab.under_test.servers import Servers

VIOLATED, REFUSED = "violated", "refused"
#: a place of an outcome that is no column
ANSWER = "answer of"
#: how a schedule can break what must hold, gravest first
BREACHES = (VIOLATED, STALLED, REFUSED)


class Framework(Protocol):
    """What a framework keeps in the process, although each worker stands for a process that has just begun."""

    def begin(self) -> None:
        """A schedule begins."""

    def begin_worker(self, index: int) -> None:
        """In the worker's thread, before its first operation."""

    def settle(self, index: int) -> None:
        """In the worker's thread, after a schedule that ended it halfway."""

    def leave(self, index: int) -> None:
        """In the worker's thread, when all is over."""


class FinalState(NamedTuple):
    """What the servers held at the end of a schedule. Of the tables that had changed: the rows that were the `same` as
    before, the others (`changed`), and those of the beginning (`opening`). `lasting`, `leased`: as values() of
    RedisSnapshot returns them."""

    same: TableRows
    changed: TableRows
    opening: TableRows
    lasting: Mapping[str, str]
    leased: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FinishedSchedule:
    """One finished schedule."""

    endings: Sequence[Ending]
    stuck: bool
    outcome: Outcome
    #: sentences of what must hold at each commit, and did not
    broken: tuple[str, ...]
    #: the leases that ended between two operations
    gaps: tuple[Gap, ...] = ()

    @property
    def results(self) -> list[Any]:
        """For each worker, its result or the exception that it raised."""
        return [result_of(ending) for ending in self.endings]


def is_struck(ending: Ending) -> bool:
    """Has a fault ended this worker, or struck it, or does it wait for ever?"""
    return ending.crashed or ending.waiting or ending.struck


def result_of(ending: Ending) -> Any:
    if ending.crashed or ending.waiting:
        return Crashed(f"{ending.worker} crashed" if ending.crashed else f"{ending.worker} waits for ever")
    if ending.error is not None:
        return ending.error
    return ending.result.value if isinstance(ending.result, ResultText) else ending.result


class Operations:
    """The engine's system under test. `judge_by` gives the verdict on an observed schedule. It raises Unanswered if it
    has to ask a server that holds something else by now."""

    words: Sequence[str] = BREACHES

    def __init__(
        self,
        scenario: Scenario,
        servers: Servers,
        database: Tables,
        keys: RedisSnapshot | None,
        frameworks: Sequence[Framework] = (),
        left_out: Collection[tuple[str, str]] = (),
        known: Collection[str] = (),
        unsteady: Collection[type] = (),
        by_server: ByServer | None = None,
    ) -> None:
        self.name, self.scenario, self.addresses = scenario.name, scenario, servers
        self.database, self.keys, self.frameworks, self.left_out = database, keys, frameworks, left_out
        self.ignored = Ignored.of(scenario.ignore, database.tables)
        self.known, self.unsteady = known, unsteady  # the constants (fresh.py); see results.py
        #: the keys with a lease whose values are others in each run
        self.moving: Collection[str] = ()
        self.drawn = NOT_MEASURED
        #: times and leases count while no time passes (KeysLeft)
        self.exact = True
        #: each sequence begins further ahead, and by how far it does
        self.draws_ahead = False
        self.ahead: Mapping[int, int] = {}
        self.by_server = by_server
        self.judge_by: Callable[[FinishedSchedule], Judgement] = lambda observed: Judgement(UNBROKEN)
        #: the engine's access to the servers, once there is any
        self.servers: Mapping[str, Server] = {}
        #: where the operations write there
        self.mariadb: MariaDBServer | None = None
        #: how many operations each worker has finished in this schedule
        self.done = [0] * len(scenario.workers)
        self._own = threading.local()
        self._outcomes: dict[Any, tuple[LeftBehind, KeysLeft]] = {}
        self._opening: dict[Table, Sequence[Mapping[str, Any]]] = {}
        self._by_key: dict[Table, Mapping[str, Mapping[str, Any]]] = {}
        self._judged: dict[Any, Judgement] = {}

    def reset(self, changed: Collection[str]) -> None:
        self.done = [0] * len(self.scenario.workers)
        for framework in self.frameworks:
            framework.begin()
        if "postgres" in changed:
            self.database.restore()
        if "mariadb" in changed and self.mariadb:
            self.mariadb.restore()
        if "redis" in changed and self.keys:
            self.keys.restore()
        if self.draws_ahead:
            self.ahead = self.database.draw_ahead()

    def work(self, index: int) -> ResultText:
        for framework in self.frameworks:
            framework.begin_worker(index)
        results, calls = [], RecordedCalls.of_worker(index)
        for operation in self.scenario.workers[index].operations:
            results.append(self._call(operation))
            self.done[index] += 1
        if self.scenario.after_a_crash and (place := here()):
            place.run.acknowledges(place.task)
        result = results[0] if len(results) == 1 else results
        counted = {} if self.ignored.calls else dict(Counter(f"called {each}" for each in calls))
        return ResultText.of(result, self.known, self.unsteady, counted)

    def _call(self, operation: Operation) -> Any:
        handed = {name: getattr(self, f"_{name}")() for name in operation.wants}
        result = operation.called_with(handed)
        return asyncio.run(result) if inspect.iscoroutine(result) else result

    def _sql(self) -> Any:
        found = getattr(self._own, "sql", None)
        if self.addresses.on_mariadb:
            if found is None or not found.open:
                self._own.sql = mariadb.connect(self.addresses.database)
        elif found is None or found.closed:
            self._own.sql = as_new_in_each_run(psycopg.connect(self.addresses.database, autocommit=True))
        return self._own.sql

    def _redis(self) -> redis.Redis:
        if not hasattr(self._own, "redis"):
            self._own.redis = redis.Redis.from_url(self.addresses.redis, retry=Retry(NoBackoff(), 0))
        found: redis.Redis = self._own.redis
        return found

    def settle(self, index: int) -> None:
        for framework in self.frameworks:
            framework.settle(index)

    def leave(self, index: int) -> None:
        for framework in self.frameworks:
            framework.leave(index)
        for client in vars(self._own).values():
            client.close()

    # -- the outcome of one schedule -----------------------------------------------------------------------------------

    def remembers(self, contents: Mapping[str, bytes]) -> bool:
        return True  # judge() looks itself: it depends on the endings too

    def judge(self, endings: Sequence[Ending], stuck: bool, contents: Mapping[str, bytes]) -> Judgement:
        key = (tuple(contents.items()), stuck, tuple(map(told_of, endings)))
        if key not in self._judged:
            if self.scenario.invariants and not self.holds(contents):
                raise Unanswered  # they are asked of the servers, which hold something else by now
            self._judged[key] = self.judge_by(self.observed(endings, stuck, contents))
        return self._judged[key]

    def observed(
        self,
        endings: Sequence[Ending],
        stuck: bool,
        contents: Mapping[str, bytes],
        seen: FinalState | None = None,
    ) -> FinishedSchedule:
        """`seen`: what the servers hold, if somebody has looked already."""
        held = tuple(each for each in contents.items() if each[0] not in (GAPS, PASSED))
        if held not in self._outcomes:
            if not self.holds(contents):
                raise Unanswered
            self._outcomes[held] = self._left_behind(seen or self.looked())
        left, keys = self._outcomes[held]
        disturbed = contents.get(PASSED) or any(map(is_struck, endings))
        keys = replace(keys, undisturbed=self.exact and not disturbed)
        outcome = Outcome(self._answers(endings), left, keys, self.known)
        return FinishedSchedule(endings, stuck, outcome, broken_in(contents), read(contents.get(GAPS, b"")))

    def _answers(self, endings: Sequence[Ending]) -> tuple[tuple[str, Any], ...]:
        told = enumerate(map(self._answer, endings))
        return tuple(
            (how, self.drawn.marked((ANSWER, self.scenario.workers[n].kind), what)) for n, (how, what) in told
        )

    def _answer(self, ending: Ending) -> tuple[str, Any]:
        if ending.crashed:
            return "crashed", None
        if ending.waiting:
            return "waits", None
        if ending.error is not None:
            return "raised", raised(ending.error, self.known, self.unsteady)
        return "returned", ending.result.plain if isinstance(ending.result, ResultText) else ending.result

    def holds(self, contents: Mapping[str, bytes]) -> bool:
        """Do the servers hold this now?"""
        ends = {
            (name, key): end for name, server in self.servers.items() for key, end in server.leases().items()
        }
        keys = self.servers.get("redis")
        leases = leased(ends, keys.now if isinstance(keys, RedisServer) and keys.told_how_long else None)
        same = all(server.contents() == contents[name] for name, server in self.servers.items())
        return same and contents.get(LEASES, leases) == leases

    def looked(self) -> FinalState:
        """What the servers hold now."""
        tables = self.database.changed()
        opening = {table: self._opened_with(table) for table in tables}
        same: dict[Table, list[Mapping[str, Any]]] = {table: [] for table in tables}
        changed: dict[Table, list[Mapping[str, Any]]] = {table: [] for table in tables}
        for table, found in self.database.rows(tables).items():
            for row in found:
                old = self._by_key[table].get(key_in(table, row))
                if old is not None and old == row:
                    same[table].append(old)  # the same object: it is held once
                else:
                    changed[table].append(row)
        told: TableRows = without_server_values(changed, self.by_server) if self.by_server else changed
        return FinalState(same, told, opening, *(self.keys.values() if self.keys else ({}, {})))

    def _opened_with(self, table: Table) -> Sequence[Mapping[str, Any]]:
        """Read once: a table with 50,000 rows takes half a second."""
        if table not in self._opening:
            self._opening[table] = found = self.database.opening(table)
            self._by_key[table] = {key_in(table, row): row for row in found} if table.key else {}
        return self._opening[table]

    def _left_behind(self, seen: FinalState) -> tuple[LeftBehind, KeysLeft]:
        known, moving, ignored = self.known, self.moving, self.ignored
        same, changed, opening = map(ignored.rows, (seen.same, seen.changed, seen.opening))
        found = canonical(same, changed, opening, {*self.left_out, *ignored.columns}, known, self.drawn)
        lasting, leased = map(ignored.values, (seen.lasting, seen.leased))
        return found, keys_left(lasting, leased, known, moving, self.drawn, found.fresh)

    def outcome(self, endings: Sequence[Ending], seen: FinalState, undisturbed: bool) -> Outcome:
        """What a schedule came to, by what is known now of what counts. `undisturbed`: as in KeysLeft."""
        results = [each.result for each in endings]
        anew = [
            ResultText.of(each.value, self.known, self.unsteady, each.calls)
            if isinstance(each, ResultText)
            else each
            for each in results
        ]
        again = [replace(ending, result=result) for ending, result in zip(endings, anew, strict=True)]
        left, keys = self._left_behind(seen)
        return Outcome(self._answers(again), left, replace(keys, undisturbed=undisturbed), self.known)

    def came_to(self, endings: Sequence[Ending], seen: FinalState) -> Iterator[tuple[Place, Any]]:
        """What was left and told, as it is, each value with its place."""
        for table, rows in seen.changed.items():
            names = [each.name for each in table.columns if (table.title, each.name) not in self.left_out]
            yield from (((table.title, name), row[name]) for row in rows for name in names if name in row)
        yield from places(seen.lasting, LASTING_KEY)
        yield from places(seen.leased, LEASED_KEY)
        for index, ending in enumerate(endings):
            told = result_of(ending)
            failed = isinstance(told, BaseException)
            plain = raised(told, None) if failed else ResultText.of(told, None, self.unsteady).plain
            yield (ANSWER, self.scenario.workers[index].kind), plain

    def knows(self, constants: Collection[str], moving: Collection[str], drawn: DrawnNumbers) -> None:
        """From now on these times and random keys mean something (fresh.py), the values of these keys with a lease mean
        nothing, and neither do these numbers. What was seen before is forgotten."""
        self.known, self.moving, self.drawn = constants, moving, drawn
        self._outcomes.clear()
        self._judged.clear()

    def show(self) -> dict[str, Any]:
        changed = self.database.changed()
        return {"balances": {}, "rows": {}, "tables": self.database.rows(changed)}


#: the contents of a server end with this once something that must always hold did not
BROKEN = b"\x00broken: "


def broken_in(contents: Mapping[str, bytes]) -> tuple[str, ...]:
    found = (held.partition(BROKEN)[2].decode() for held in contents.values())
    return tuple(sentence for text in found if text for sentence in text.split("\n"))
