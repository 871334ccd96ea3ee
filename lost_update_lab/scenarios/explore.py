"""`explore`: put operations on trial, with every order of their commands, on real servers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

from lost_update_lab.gates.at_a_time import AtATime
from lost_update_lab.gates.invariant_clock import BY_TIMES_IN_ROWS, REAL_TIME_ASKED, InvariantClock
from lost_update_lab.invariants import TableInvariant
from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.epoch import Epoch
from lost_update_lab.model.errors import ON_ONE_HOST, Broken
from lost_update_lab.model.system import UNBROKEN
from lost_update_lab.scenarios.comparisons import chosen, is_redelivered, parts_of, repeated, together
from lost_update_lab.scenarios.control import Control, control
from lost_update_lab.scenarios.differing import written_by
from lost_update_lab.scenarios.exploration import Finding, Opened, search
from lost_update_lab.scenarios.fresh_process import CACHED, CLEAR
from lost_update_lab.scenarios.judging import Judge
from lost_update_lab.scenarios.mistakes import after_setup, examine, not_explored, remedy_of, set_up
from lost_update_lab.scenarios.mutations import mutations
from lost_update_lab.scenarios.notes import EVEN_IN_TURNS, notes_of
from lost_update_lab.scenarios.progress import SearchProgress, shown
from lost_update_lab.scenarios.result import INCONCLUSIVE, KEPT, Interrupted, Result
from lost_update_lab.scenarios.schedule import Schedule
from lost_update_lab.schedule.interrupt import Interrupt, interruptible
from lost_update_lab.servers.mariadb.server import MARIADB
from lost_update_lab.servers.postgres.server import POSTGRES
from lost_update_lab.snapshot.by_server import keys_among
from lost_update_lab.snapshot.redis import RedisSnapshot
from lost_update_lab.snapshot.tables import Tables
from lost_update_lab.under_test.handed import handed
from lost_update_lab.under_test.operations import BREACHES, Framework
from lost_update_lab.under_test.scenario import (
    FAULT_WORDS,
    Mistake,
    Scenario,
    check_results,
    invariants_of,
    limits_of,
    workers_of,
)
from lost_update_lab.under_test.servers import Servers, choose, known_by_environment

#: replays this schedule instead of exploring (`lost-update-lab replay`)
REPLAY = "LOST_UPDATE_LAB_REPLAY"
APART = "let asyncio make the loop: asyncio.run(), or asyncio.Runner() without a loop_factory"
TALK = (
    "let them talk to the servers that the explorer was given (DATABASE_URL, REDIS_URL), await their coroutines, and "
    "read what they need themselves: an object that was loaded before is one object for all workers"
)
AT_ONCE = (
    "{} sends a single command: a crash comes before it, and nothing is done, or after it, and all of it is"
)
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
    isolation: str | Sequence[str] = "",
    retry: Any = None,
    control: bool = True,
    deadlocks: bool = True,
    mutate: bool = False,
    name: str = "",
    django: bool = False,
    **each_fault: int,
) -> Result:
    """Run every order of the workers' commands on a real PostgreSQL (or MariaDB) and Valkey, and return the result.

    `workers`: callables, `(callable, arguments …)`, or `worker(name, callable, …)`; each stands for a process. `pairs`:
    operations instead; each pair of them is explored, each with itself too. `setup`: puts the opening state there, and
    commits it; it may ask for `sql` or `redis`. `invariant`: a callable, `(callable, sentence)`, or several; it may
    take the workers' results. Without one, the outcome must be that of some serial order. `always`: the same, asked at
    each commit. `faults`: how many of any kind in one schedule; or by kind: `crashes=1`, `pauses=`, `lost_replies=`,
    `failovers=`, `clock_jumps=`, `thread_deaths=`. `deadlocks` False: what the victim of a deadlock does is not
    explored. `refusals`: exceptions by which an operation says that it did nothing. `isolation`: a level, or several.
    `retry`: the retries of the operations' caller. `mutate`: mutations.py. `database`, `redis`: addresses; else
    DATABASE_URL and REDIS_URL, else embedded servers; `mysql://…` is a MariaDB, "mariadb" an embedded one. `django`:
    the operations belong to this Django project and database. `budget`: seconds for each part. Raises Mistake.
    """
    laws: dict[str, Any] = {"invariants": invariants_of(invariant), "always": invariants_of(always)}
    limits: dict[str, Any] = {"budget": budget, "slack": slack, "control": control, "mutate": mutate}
    limits |= {"refusals": tuple(refusals), "deadlocks": deadlocks, **limits_of(faults, each_fault)}
    made = tuple(workers) if pairs else workers_of(workers, limits["faults"] or is_redelivered(retry))
    scenario = Scenario(name=name or _caller(), workers=made, setup=setup, **laws, **limits)
    how: dict[str, Any] = {"retry": retry, "disposable": disposable, "replay": replaying()}
    with shown() as progress:
        where = _where(django, database, redis)
        return compare(parts_of(scenario, pairs, isolation), **where, **how, progress=progress)


def _where(django: bool, database: str, redis: str) -> dict[str, Any]:
    """Django is imported only if asked for. Outside pytest-django nothing else empties the tables."""
    if not django:
        return {"servers": choose(database, redis)}
    bound: dict[str, Any] = import_module("lost_update_lab.under_test.django_project").bound()
    return {**bound, "servers": bound["servers"](), "leave_as_found": True}


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
    disposable: bool = False,
    frameworks: Sequence[Framework] = (),
    patches: Sequence[Any] = (),
    leave_as_found: bool = True,
    replay: str = "",
    again: str = "",
    progress: Callable[[SearchProgress], None] | None = None,
) -> Result:
    """Explore a scenario on these servers, or `replay` one schedule of it. `again`: how a user sees it again.
    `progress` is told how far the search is. Raises Interrupted after Ctrl-C."""
    check_results(scenario.invariants, scenario.callers)
    with (
        opened(scenario, servers, disposable, frameworks, patches, leave_as_found) as ready,
        interruptible(),
    ):
        try:
            result = _run(ready, replay, progress)
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
    except Broken as error:
        raise not_explored(error) from error
    searched = finding.searched
    notes = [*notes_of(ready), *searched.notes, *map(_clock_note, searched.virtual_clocks.items())]
    several = _several_at_a_time(ready) or _no_serial_order(ready)
    needed = scenario.control and finding.searched.exhausted and not finding.schedule
    found = control(ready) if needed else Control()
    result = _result(ready, finding, [*notes, *([found.note] if found.note else [])], found.cannot_tell)
    if several and result.kept and not replay:
        result = replace(result, verdict=INCONCLUSIVE, cause=several[0], remedy=several[1])
    if InvariantClock.asked and (
        InvariantClock.virtual or searched.virtual_clocks.keys() & {POSTGRES, MARIADB}
    ):
        result = _by_another_clock(result)
    if not replay and not result.schedule and (locked := _locked(ready)):
        result = replace(result, verdict=INCONCLUSIVE, cause=locked, remedy=remedy_of(ON_ONE_HOST))
    if result.verdict == INCONCLUSIVE:  # what makes it so holds for each hazard
        hazards = {each: INCONCLUSIVE if word == KEPT else word for each, word in result.hazards.items()}
        result = replace(result, hazards=hazards)
    if scenario.mutate and result.kept and not replay:
        result = replace(result, mutations=tuple(mutations(ready)))
    return result


@contextmanager
def opened(
    scenario: Scenario,
    servers: Servers,
    disposable: bool,
    frameworks: Sequence[Framework],
    patches: Sequence[Any],
    leave_as_found: bool,
) -> Iterator[Opened]:
    """The setup has run, and what it left is known. The workers' time begins where its time ended. Raises Mistake."""
    InvariantClock.begin()
    of: Any = import_module(f"lost_update_lab.scenarios.on_{'mariadb' if servers.on_mariadb else 'postgres'}")
    with ExitStack() as stack:
        stack.enter_context(known_by_environment(servers))
        connection = stack.enter_context(of.prepared(servers, disposable))
        if leave_as_found:
            stack.enter_context(of.left_as_found(servers))
        stack.enter_context(_keys_as_found(servers))
        before = of.mark(connection), _keys(servers)
        if scenario.setup:
            with handed(scenario.setup, servers) as setup:
                set_up(setup, scenario.budget)
            after_setup(of.left_open(connection), before == (of.mark(connection), _keys(servers)))
        stack.enter_context(Epoch.begins())
        tables: Tables = of.tables(servers)
        stack.callback(tables.close)
        keys = RedisSnapshot(servers.redis) if servers.redis else None
        if keys:
            stack.callback(keys.close)
        for invariant in (*scenario.invariants, *scenario.always):
            if isinstance(invariant.holds, TableInvariant):
                invariant.holds.bind(tables)
        judge, by_server = Judge(scenario), written_by(tables, of.NOW)
        opened = Opened(scenario, servers, of, tables, keys, frameworks, patches, judge, by_server)
        opened.by_server = replace(by_server, keys=keys_among(opened.known))
        yield opened


def _keys(servers: Servers) -> object:
    """What Redis holds now."""
    if not servers.redis:
        return None
    keys = RedisSnapshot(servers.redis)
    try:
        return keys.keys(), sorted(keys.left)
    finally:
        keys.close()


@contextmanager
def _keys_as_found(servers: Servers) -> Iterator[None]:
    """At the end, Redis holds what it held before."""
    keys = RedisSnapshot(servers.redis, virtual=False) if servers.redis else None
    try:
        yield
    finally:
        if keys:
            keys.restore()
            keys.close()


def _by_another_clock(result: Result) -> Result:
    """An invariant asked the real clock, and may hold, or not, for that reason only."""
    told = REAL_TIME_ASKED.format("; ".join(InvariantClock.asked))
    sentence = "what the invariant says depends on a time that is none of the schedule's"
    found = replace(result, verdict=INCONCLUSIVE, schedule=None, sentence=sentence)
    notes = tuple(each for each in result.notes if each != EVEN_IN_TURNS)
    return replace(found, cause=told, remedy=BY_TIMES_IN_ROWS, notes=notes)


def _locked(opened: Opened) -> str:
    """Do the operations hold locks of this process? A single worker may: it is one process."""
    serial = opened.judge.serial
    return serial.meanwhile if serial and len(opened.scenario.workers) > 1 else ""


def _several_at_a_time(opened: Opened) -> tuple[str, str] | None:
    """Why a search of every order of the workers is not one of every order here, and the remedy. None: it is."""
    names = " and ".join(opened.scenario.names[each] for each in sorted(AtATime.seen))
    told = f"several coroutines of {names} are at work at a time, in an event loop without gates, and were tried in one"
    return (f"{told} order only", APART) if names else None


def _no_serial_order(opened: Opened) -> tuple[str, str] | None:
    """Likewise, where every outcome must be that of some serial order."""
    found = opened.judge.serial.interleaved if opened.judge.serial else set()
    if opened.scenario.invariants or not found:
        return None
    names = " and ".join(opened.scenario.names[each] for each in sorted(found))
    told = f"the coroutines of {names} cannot be run one after the other: one waits while the next begins"
    return f"{told}. So there is no serial order to compare with", "an invariant that says what must hold"


def _clock_note(clock: tuple[str, str]) -> str:
    return "the clock of {} is virtual: {} answer in its place".format(*clock)


def _result(opened: Opened, finding: Finding, notes: list[str], cannot_tell: bool) -> Result:
    scenario, searched, schedule = opened.scenario, finding.searched, finding.schedule
    verdict = schedule.verdict if schedule else KEPT if searched.exhausted else INCONCLUSIVE
    verdict = KEPT if verdict == UNBROKEN else verdict
    cause, remedy = ("", "") if schedule else (searched.cause, searched.remedy)
    alone = len(scenario.workers) == 1
    tried = searched.overlapping or searched.several or (alone and searched.fired)
    if verdict == KEPT and alone and not tried and _is_done_at_once(scenario, searched):
        tried, notes = True, [*notes, AT_ONCE.format(scenario.workers[0].name)]
    if verdict == KEPT and not (tried or finding.replayed):
        verdict, cause = INCONCLUSIVE, _never_overlapped(opened)
        remedy = TALK
    if verdict == KEPT and opened.cached:
        name = opened.cached[0]
        verdict, cause, remedy = INCONCLUSIVE, CACHED.format(name), CLEAR.format(name)
    if verdict == KEPT and cannot_tell:
        verdict, cause, remedy = INCONCLUSIVE, notes.pop(), "an invariant that a lost update breaks"
    return Result(
        name=scenario.name,
        part=scenario.part,
        verdict=verdict,
        sentence=_sentence(verdict, schedule, finding.replayed),
        bounds=_bounds(scenario, searched, finding.seconds, finding.replayed),
        exhausted=searched.exhausted,
        schedule=schedule,
        hazards=dict(_hazards(scenario, searched)),
        schedules=searched.schedules,
        seconds=finding.seconds,
        cause=cause,
        remedy=remedy_of(remedy),
        notes=tuple(notes),
        replayed=finding.replayed,
    )


def _is_done_at_once(scenario: Scenario, searched: Any) -> bool:
    """Is there nothing that a crash could leave half done, where crashes were asked for?"""
    asked = bool(scenario.faults) and Fault.CRASH in scenario.kinds and not scenario.redelivered
    return asked and searched.commands == 1


def _never_overlapped(opened: Opened) -> str:
    if len(opened.scenario.workers) == 1 and opened.scenario.faults:
        return (
            "no fault could touch the operation: for a pause, or a clock that jumps, there has to be a lease or a "
            "clock, and for every other one a command"
        )
    told = "the operations never overlapped: fewer than two of them sent a command"
    if not opened.carried:
        return told
    return f"{told}. They share what is changed in memory: {', '.join(opened.carried[:3])}"


def _sentence(verdict: str, schedule: Schedule | None, replayed: bool) -> str:
    if verdict == KEPT:
        return (
            "this order breaks nothing" if replayed else "exhausted within these bounds: no order breaks it"
        )
    first = schedule.sentences[0] if schedule and schedule.sentences else ""
    return first or "nothing was found, and the search did not come to its end"


def _bounds(scenario: Scenario, searched: Any, seconds: float, replayed: bool) -> str:
    kinds = "" if scenario.kinds == frozenset(Fault) else " (" + ", ".join(sorted(scenario.kinds)) + ")"
    faults = (
        f"at most {scenario.faults} fault{'s' * (scenario.faults != 1)}{kinds}"
        if scenario.faults
        else "no fault"
    )
    if scenario.most:
        words = {kinds: word.replace("_", " ") for word, kinds in FAULT_WORDS.items()}
        named = [f"{n} {words[kinds] if n > 1 else ' or '.join(sorted(kinds))}" for kinds, n in scenario.most]
        faults = f"at most {', '.join(named[:-1])} and {named[-1]}"
    names = _callers(scenario)
    if replayed:
        return f"one schedule of {names}, {faults} in it, replayed"
    how = "every order" if searched.exhausted else "not every order"
    left = searched.left_in_deadlock and f"; {searched.left_in_deadlock} were left at a deadlock"
    many = f"{searched.schedules} schedule{'s' * (searched.schedules != 1)}"
    return f"{how} of {names}, {faults} in each: {many} in {seconds:.1f} s{left or ''}"


def _callers(scenario: Scenario) -> str:
    *others, last = [worker.name for worker in scenario.callers]
    if scenario.redelivered:
        return (
            f"{', '.join(others)} and {last}, each" * bool(others)
            + last * (not others)
            + (" delivered twice" if scenario.twice else " delivered again after a crash")
        )
    if others:
        return f"{', '.join(others)} and {last}"
    return f"the tasks of {last}" if scenario.callers[0].is_of_asyncio else f"{last} alone"


def _hazards(scenario: Scenario, searched: Any) -> Iterator[tuple[str, str]]:
    for fault in (None, *sorted(scenario.kinds)):
        if fault is None or (scenario.faults and fault in searched.fired):
            word = searched.under(fault)
            yield (
                str(fault or "contention"),
                word if word in BREACHES else KEPT if searched.exhausted else INCONCLUSIVE,
            )


def replaying() -> str:
    """The id of the schedule that is to be replayed. "": none."""
    return os.environ.get(REPLAY, "")


__all__ = ["Mistake", "Result", "explore"]
