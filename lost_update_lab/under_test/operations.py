"""A scenario as the engine explores it: workers that call the user's functions, and the outcome of each schedule."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import psycopg
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from lost_update_lab.model.errors import Unanswered
from lost_update_lab.model.gaps import Gap, read
from lost_update_lab.model.server import Server
from lost_update_lab.model.system import GAPS, LEASES, STALLED, UNBROKEN, Ending, Judgement, leased, told_of
from lost_update_lab.runs.place import here
from lost_update_lab.servers.mariadb.server import MariaDBServer
from lost_update_lab.servers.redis.server import RedisServer
from lost_update_lab.snapshot.redis import RedisSnapshot
from lost_update_lab.snapshot.tables import Tables
from lost_update_lab.under_test import mariadb
from lost_update_lab.under_test.fresh import comparable, without_clock
from lost_update_lab.under_test.outcome import KeysLeft, LeftBehind, Outcome, canonical
from lost_update_lab.under_test.results import ResultText
from lost_update_lab.under_test.scenario import Operation, Scenario
from lost_update_lab.under_test.servers import Servers

VIOLATED, REFUSED = "violated", "refused"
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


class Crashed(Exception):
    """Stands for the result of a worker that a fault has ended, or that waits for ever."""


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
    ) -> None:
        self.name, self.scenario, self.addresses = scenario.name, scenario, servers
        self.database, self.keys, self.frameworks, self.left_out = database, keys, frameworks, left_out
        self.known = known  # the constants (fresh.py)
        #: the keys with a lease whose values are others in each run
        self.moving: Collection[str] = ()
        self.judge_by: Callable[[FinishedSchedule], Judgement] = lambda observed: Judgement(UNBROKEN)
        #: the engine's access to the servers, once there is any
        self.servers: Mapping[str, Server] = {}
        #: where the operations write there
        self.mariadb: MariaDBServer | None = None
        #: how many operations each worker has finished in this schedule
        self.done = [0] * len(scenario.workers)
        self._own = threading.local()
        self._outcomes: dict[Any, tuple[LeftBehind, KeysLeft]] = {}
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

    def work(self, index: int) -> ResultText:
        for framework in self.frameworks:
            framework.begin_worker(index)
        results = []
        for operation in self.scenario.workers[index].operations:
            results.append(self._call(operation))
            self.done[index] += 1
        if self.scenario.redelivered and not self.scenario.twice and (place := here()):
            place.run.acknowledges(place.task)
        return ResultText.of(results[0] if len(results) == 1 else results, self.known)

    def _call(self, operation: Operation) -> Any:
        handed = {name: getattr(self, f"_{name}")() for name in operation.wants}
        result = operation.call(*operation.args, **operation.keywords, **handed)
        return asyncio.run(result) if inspect.iscoroutine(result) else result

    def _sql(self) -> Any:
        found = getattr(self._own, "sql", None)
        if self.addresses.on_mariadb:
            if found is None or not found.open:
                self._own.sql = mariadb.connect(self.addresses.database)
        elif found is None or found.closed:
            self._own.sql = psycopg.connect(self.addresses.database, autocommit=True)
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
        self, endings: Sequence[Ending], stuck: bool, contents: Mapping[str, bytes]
    ) -> FinishedSchedule:
        held = tuple(each for each in contents.items() if each[0] != GAPS)
        if held not in self._outcomes:
            if not self.holds(contents):
                raise Unanswered
            self._outcomes[held] = self._left_behind()
        outcome = Outcome(tuple(map(_answer, endings)), *self._outcomes[held], self.known)
        return FinishedSchedule(endings, stuck, outcome, broken_in(contents), read(contents.get(GAPS, b"")))

    def holds(self, contents: Mapping[str, bytes]) -> bool:
        """Do the servers hold this now?"""
        ends = {
            (name, key): end for name, server in self.servers.items() for key, end in server.leases().items()
        }
        keys = self.servers.get("redis")
        leases = leased(ends, keys.now if isinstance(keys, RedisServer) and keys.told_how_long else None)
        same = all(server.contents() == contents[name] for name, server in self.servers.items())
        return same and contents.get(LEASES, leases) == leases

    def _left_behind(self) -> tuple[LeftBehind, KeysLeft]:
        changed = self.database.changed()
        rows = self.database.rows(changed)
        opening = {table: self.database.opening(table) for table in changed}
        found = canonical(rows, opening, self.left_out, self.known)
        lasting, leased = self.keys.values() if self.keys else ({}, {})
        kept = {key: without_clock(value, self.known) for key, value in lasting.items()}
        others = {
            key: without_clock(comparable(value, self.known), self.known) for key, value in leased.items()
        }
        others = {key: value for key, value in others.items() if key not in self.moving}
        return found, KeysLeft(kept, others)

    def texts(self, endings: Sequence[Ending]) -> Iterator[tuple[str, str]]:
        """What the servers hold now and the workers were told, as it is: (name, text)."""
        for table, rows in self.database.rows(self.database.changed()).items():
            for row in rows:
                shown = {
                    name: value for name, value in row.items() if (table.title, name) not in self.left_out
                }
                yield "", json.dumps(shown, default=str)
        lasting, leased = self.keys.values() if self.keys else ({}, {})
        yield from (("", text) for text in lasting.values())
        yield from leased.items()
        for ending in endings:
            told = result_of(ending)
            yield "", str(told) if isinstance(told, BaseException) else ResultText.of(told, None)

    def knows(self, constants: Collection[str], moving: Collection[str]) -> None:
        """From now on these times and random keys mean something (fresh.py), and the values of these keys with a lease
        mean nothing. What was seen before is forgotten."""
        self.known, self.moving = constants, moving
        self._outcomes.clear()
        self._judged.clear()

    def show(self) -> dict[str, Any]:
        changed = self.database.changed()
        return {"balances": {}, "rows": {}, "tables": self.database.rows(changed)}


def _answer(ending: Ending) -> tuple[str, Any]:
    if ending.crashed:
        return "crashed", None
    if ending.waiting:
        return "waits", None
    if ending.error is not None:
        return "raised", type(ending.error).__qualname__
    return "returned", ending.result.plain if isinstance(ending.result, ResultText) else ending.result


#: the contents of a server end with this once something that must always hold did not
BROKEN = b"\x00broken: "


def broken_in(contents: Mapping[str, bytes]) -> tuple[str, ...]:
    found = (held.partition(BROKEN)[2].decode() for held in contents.values())
    return tuple(sentence for text in found if text for sentence in text.split("\n"))
