"""`explore`: put operations on trial, with every order of their commands, on real servers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from time import perf_counter
from typing import Any

from lost_update_lab.embedded.one_core import one_core
from lost_update_lab.gates.invariant_clock import InvariantClock
from lost_update_lab.gates.recorded_calls import RecordedCalls
from lost_update_lab.invariants import TableInvariant
from lost_update_lab.model.epoch import Epoch
from lost_update_lab.model.errors import Broken, ClockInside
from lost_update_lab.scenarios.comparisons import chosen, is_redelivered, parts_of, repeated, together
from lost_update_lab.scenarios.conclusion import concluded
from lost_update_lab.scenarios.control import Control, control
from lost_update_lab.scenarios.differing import written_by
from lost_update_lab.scenarios.exploration import Opened, search
from lost_update_lab.scenarios.isolation import Levels
from lost_update_lab.scenarios.judging import Judge
from lost_update_lab.scenarios.mistakes import after_setup, examine, not_explored, set_up
from lost_update_lab.scenarios.mutations import mutations
from lost_update_lab.scenarios.progress import SearchProgress, shown
from lost_update_lab.scenarios.result import Interrupted, Result
from lost_update_lab.schedule.interrupt import Interrupt, interruptible
from lost_update_lab.snapshot.by_server import keys_among
from lost_update_lab.snapshot.redis import RedisSnapshot
from lost_update_lab.snapshot.tables import Tables
from lost_update_lab.under_test.arguments import checked
from lost_update_lab.under_test.handed import handed, with_clients
from lost_update_lab.under_test.of_django import project_of
from lost_update_lab.under_test.operations import Framework
from lost_update_lab.under_test.scenario import (
    Mistake,
    Scenario,
    check_results,
    invariants_of,
    limits_of,
    workers_of,
)
from lost_update_lab.under_test.servers import Servers, check_redis, choose, known_by_environment

#: replays this schedule instead of exploring (`lost-update-lab replay`)
REPLAY = "LOST_UPDATE_LAB_REPLAY"
BY_ENVIRONMENT = f"run the same with {REPLAY}={{id}} in the environment"


def explore(
    workers: Iterable[Any] = (),
    *,
    pairs: Iterable[Any] = (),
    setup: Callable[[], Any] | None = None,
    invariant: Any = None,
    always: Any = None,
    faults: int = 0,
    refusals: Sequence[type[BaseException]] = (),
    database: str = "",
    redis: str = "",
    disposable: bool = False,
    budget: float = 60.0,
    slack: float = 0.1,
    isolation: Levels = "",
    retry: Any = None,
    ignore: Sequence[str] = (),
    control: bool = True,
    deadlocks: bool = True,
    mutate: bool = False,
    name: str = "",
    django: bool | None = None,
    **each_fault: int,
) -> Result:
    """Run every order of the workers' commands on real servers, and return the result.

    Raises Mistake if the scenario cannot be explored as it is written. The message says what to do about it.

    - `workers`: callables, `(callable, arguments …)`, or `worker(name, callable, …)`. Each stands for a process.
    - `pairs`: operations instead of workers. Each runs with each other one, and with itself.
    - `setup`: a callable that commits the opening state. It may ask for `sql` or `redis`.
    - `invariant`: a callable, `(callable, sentence)`, or several; it may take the workers' results. It must hold after
      each schedule. Without one, the outcome must be that of some serial order.
    - `always`: as `invariant`; it must hold at each commit.
    - `faults`: how many faults of any kind a schedule may have (0). Or by kind: `crashes=1`, `pauses=`,
      `lost_replies=`, `failovers=`, `clock_jumps=`, `thread_deaths=`.
    - `refusals`: exceptions that mean "nothing was done".
    - `database`, `redis`: addresses, also `mysql://…`, or "mariadb" (embedded). Without them DATABASE_URL and REDIS_URL
      count, and without those embedded servers.
    - `disposable`: True allows a database without "test" in its name. Each schedule writes to it.
    - `budget`: seconds of real time for each search (60).
    - `slack`: how many seconds of virtual time a worker may be late without a pause (0.1).
    - `isolation`: one level or several, such as "read committed". Each is explored.
    - `retry`: the exceptions after which the caller repeats the operation, at most three times; or "redelivered" or
      "delivered twice", as by a task queue; or a tuple of both.
    - `ignore`: without an invariant, the tables, columns and keys that do not count, and "calls" of mocks.
    - `control`: False leaves out the second search, without the locks, which has to break.
    - `deadlocks`: False leaves out what the victim of a deadlock does.
    - `mutate`: True removes each protection in turn, and lists those that no schedule needs.
    - `name`: the name of the result; else that of the calling function.
    - `django`: True: the operations are those of the Django project; False: they are not. Without it: they are if one
      is configured and `database` is not another one.
    """
    laws: dict[str, Any] = {"invariants": invariants_of(invariant), "always": invariants_of(always)}
    given = {"budget": budget, "slack": slack, "control": control, "mutate": mutate, "deadlocks": deadlocks}
    given |= limits_of(faults, each_fault)
    limits = checked(given, refusals, setup, ignore=ignore, disposable=disposable)
    made = tuple(workers) if pairs else workers_of(workers, limits["faults"] or is_redelivered(retry))
    scenario = Scenario(name=name or _caller(), workers=made, **laws, **limits)
    how = {**_where(django, database, redis), "disposable": disposable, "replay": replaying()}
    with shown() as progress:
        return compare(parts_of(scenario, pairs, isolation), retry=retry, **how, progress=progress)


def _where(django: bool | None, database: str, redis: str) -> dict[str, Any]:
    if not (bound := project_of(django, database)):
        return {"servers": choose(database, redis)}
    found: Servers = bound["servers"]()
    return {**bound, "servers": Servers(database or found.database, redis or found.redis)}


def _caller() -> str:
    name = sys._getframe(2).f_code.co_name  # inspect.stack() reads the source of every caller's file
    return "script" if name == "<module>" else name


def compare(
    parts: Sequence[Scenario], servers: Servers, *, retry: Any = None, replay: str = "", **how: Any
) -> Result:
    """Run each of these parts, one after another. `replay`: one schedule of one part. `how`: as for `run`."""
    asked, schedule = chosen(parts, replay)
    found = [run(repeated(each, retry), servers, replay=schedule, **how) for each in asked]
    return together(parts[0].name, found)


def run(
    scenario: Scenario,
    servers: Servers,
    *,
    replay: str = "",
    again: str = "",
    progress: Callable[[SearchProgress], None] | None = None,
    **how: Any,
) -> Result:
    """Explore a scenario on these servers, or `replay` one schedule of it. `again`: how a user sees it again.
    `progress` is told how far the search is. `how`: as for `opened`. Raises Interrupted after Ctrl-C."""
    check_results(scenario)
    begun = perf_counter()
    try:
        with (
            one_core(),
            opened(scenario, servers, **how) as ready,
            interruptible(),
        ):
            result = _run(ready, replay, progress)
    except ClockInside as error:
        if how.get("virtual_inside"):  # it is what cannot be altered
            raise not_explored(error) from error
        how |= {"virtual_inside": True, "distinct_times": error.with_another, "begun": begun}
        return run(scenario, servers, replay=replay, again=again, progress=progress, **how)
    except Mistake:
        if Interrupt.came:
            raise Interrupted from None
        raise
    told = (again or BY_ENVIRONMENT).format(id=result.id) if result.id else ""
    result = replace(result, again=told)
    if Interrupt.came:
        raise Interrupted(result)
    return result


def _run(ready: Opened, replay: str, progress: Callable[[SearchProgress], None] | None) -> Result:
    scenario = ready.scenario
    try:
        finding = search(ready, partial(examine, ready), replay, progress)
    except ClockInside:
        raise
    except Broken as error:
        raise not_explored(error) from error
    ready.begun = 0.0  # each further search has a budget of its own
    needed = scenario.control and finding.searched.exhausted and not finding.schedule
    result = concluded(ready, finding, control(ready) if needed else Control(), bool(replay))
    if scenario.mutate and result.kept and not replay:
        result = replace(result, mutations=tuple(mutations(ready)))
    return result


@contextmanager
def opened(
    scenario: Scenario,
    servers: Servers,
    disposable: bool = False,
    frameworks: Sequence[Framework] = (),
    patches: Sequence[Any] = (),
    *,
    virtual_inside: bool = False,
    distinct_times: bool = False,
    begun: float = 0.0,
) -> Iterator[Opened]:
    """The setup has run, and what it left is known. The workers' time begins where its time ended.
    `virtual_inside`, `distinct_times`, `begun`: as in Opened. Raises Mistake."""
    InvariantClock.begin()
    RecordedCalls.begin()
    of: Any = import_module(f"lost_update_lab.scenarios.on_{'mariadb' if servers.on_mariadb else 'postgres'}")
    check_redis(servers)
    with ExitStack() as stack:
        stack.enter_context(known_by_environment(servers))
        connection = stack.enter_context(of.prepared(servers, disposable))
        stack.enter_context(of.left_as_found(servers))
        found = stack.enter_context(_keys_as_found(servers))
        before = of.mark(connection), _keys(found)
        for each in scenario.setups:
            with handed(each, servers) as setup:
                set_up(setup, scenario.budget)
        if scenario.setups:
            after_setup(
                of.left_open(connection), before == (of.mark(connection), _keys(found)), bool(frameworks)
            )
        stack.enter_context(Epoch.begins())
        inside = stack.enter_context(of.shadowed(connection)) if virtual_inside else None
        tables: Tables = of.tables(servers)
        stack.callback(tables.close)
        if inside:
            stack.callback(inside.put_back)  # before that drops the explorer's functions, and what uses one
        keys = stack.enter_context(closing(RedisSnapshot(servers.redis))) if servers.redis else None
        for invariant in (*scenario.invariants, *scenario.always):
            if isinstance(invariant.holds, TableInvariant):
                invariant.holds.bind(tables)
        laws, always = with_clients(scenario.invariants, servers), with_clients(scenario.always, servers)
        scenario = replace(scenario, invariants=laws, always=always)
        by_server = written_by(tables, of.NOW, times=not (virtual_inside and servers.on_mariadb))
        opened = Opened(scenario, servers, of, tables, keys, frameworks, patches, Judge(scenario), by_server)
        opened.virtual_inside, opened.distinct_times, opened.begun = virtual_inside, distinct_times, begun
        opened.by_server = replace(by_server, keys=keys_among(opened.known))
        yield opened


def _keys(redis: RedisSnapshot | None) -> object:
    """A value that differs if something was written to Redis in between, even if it holds the same as before."""
    if not redis:
        return None
    lasting, leased = redis.values()
    return lasting, sorted(leased), redis.writes()


@contextmanager
def _keys_as_found(servers: Servers) -> Iterator[RedisSnapshot | None]:
    """At the end, Redis holds what it held before."""
    keys = RedisSnapshot(servers.redis, virtual=False) if servers.redis else None
    try:
        yield keys
    finally:
        if keys:
            keys.restore()
            keys.close()


def replaying() -> str:
    """The id of the schedule that is to be replayed. "": none."""
    return os.environ.get(REPLAY, "")


__all__ = ["Mistake", "Result", "explore"]
