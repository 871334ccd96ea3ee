"""What a search comes to: its verdict with what it found, or why there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from lost_update_lab.gates.at_a_time import AtATime
from lost_update_lab.gates.invariant_clock import BY_TIMES_IN_ROWS, REAL_TIME_ASKED, InvariantClock
from lost_update_lab.gates.recorded_calls import RECORD_IT, RecordedCalls
from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.errors import ON_ONE_HOST
from lost_update_lab.model.system import UNBROKEN
from lost_update_lab.scenarios.control import Control
from lost_update_lab.scenarios.exploration import Finding, Opened
from lost_update_lab.scenarios.fresh_process import CACHED, CLEAR
from lost_update_lab.scenarios.mistakes import remedy_of
from lost_update_lab.scenarios.notes import EVEN_IN_TURNS, blind_laws, nobody_looks, notes_of
from lost_update_lab.scenarios.result import INCONCLUSIVE, KEPT, Result
from lost_update_lab.servers.mariadb.server import MARIADB
from lost_update_lab.servers.postgres.server import POSTGRES
from lost_update_lab.under_test.operations import BREACHES
from lost_update_lab.under_test.scenario import FAULT_WORDS, Scenario

APART = "let asyncio make the loop: asyncio.run(), or asyncio.Runner() without a loop_factory"
TALK = (
    "let them talk to the servers that the explorer was given (DATABASE_URL, REDIS_URL), await their coroutines, and "
    "read what they need themselves: an object that was loaded before is one object for all workers"
)
AT_ONCE = (
    "{} sends a single command: a crash comes before it, and nothing is done, or after it, and all of it is"
)
CUT_SHORT = "the search ended before every order was tried: {}. What would help: {}"


def concluded(ready: Opened, finding: Finding, found: Control, replay: bool) -> Result:
    """`found`: by the control. `replay`: of one schedule only."""
    searched, blind = finding.searched, list(blind_laws(ready))
    notes = [*notes_of(ready, searched, blind), *searched.notes]
    notes += map(_clock_note, searched.virtual_clocks.items())
    notes += [found.note] if found.note else []
    result = _result(ready, finding, notes, found.cannot_tell, blind)
    several = _several_at_a_time(ready) or _no_serial_order(ready)
    if several and result.kept and not replay:
        result = replace(result, verdict=INCONCLUSIVE, cause=several[0], remedy=several[1])
    if InvariantClock.asked and (
        InvariantClock.virtual or searched.virtual_clocks.keys() & {POSTGRES, MARIADB}
    ):
        result = _by_another_clock(result)
    if told := RecordedCalls.told():
        sentence = "what the invariant says depends on what other schedules have called"
        result = _of_no_schedule(result, sentence, told, RECORD_IT)
    if not replay and not result.schedule and (locked := _locked(ready)):
        result = replace(result, verdict=INCONCLUSIVE, cause=locked, remedy=remedy_of(ON_ONE_HOST))
    if result.verdict == INCONCLUSIVE:  # what makes it so holds for each hazard
        hazards = {each: INCONCLUSIVE if word == KEPT else word for each, word in result.hazards.items()}
        result = replace(result, hazards=hazards)
    return result


def _by_another_clock(result: Result) -> Result:
    """An invariant asked the real clock, and may hold, or not, for that reason only."""
    sentence = "what the invariant says depends on a time that is none of the schedule's"
    notes = tuple(each for each in result.notes if each != EVEN_IN_TURNS)
    told = REAL_TIME_ASKED.format("; ".join(InvariantClock.asked))
    return _of_no_schedule(replace(result, notes=notes), sentence, told, BY_TIMES_IN_ROWS)


def _of_no_schedule(result: Result, sentence: str, cause: str, remedy: str) -> Result:
    """What an invariant said is not true of the schedule, whether it held or not."""
    return replace(result, verdict=INCONCLUSIVE, schedule=None, sentence=sentence, cause=cause, remedy=remedy)


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


def _result(
    opened: Opened, finding: Finding, notes: list[str], cannot_tell: bool, blind: Sequence[tuple[str, str]]
) -> Result:
    scenario, searched, schedule = opened.scenario, finding.searched, finding.schedule
    verdict = schedule.verdict if schedule else KEPT if searched.exhausted else INCONCLUSIVE
    verdict = KEPT if verdict == UNBROKEN else verdict
    cause, remedy = ("", "") if schedule else (searched.cause, searched.remedy)
    if schedule and searched.cause:
        notes = [*notes, CUT_SHORT.format(searched.cause, remedy_of(searched.remedy))]
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
    if verdict == KEPT and not finding.replayed and nobody_looks(scenario, blind):
        verdict, cause, remedy = INCONCLUSIVE, *blind[0]
    return Result(
        name=scenario.name,
        part=scenario.part,
        verdict=verdict,
        sentence=_sentence(verdict, finding),
        bounds=_bounds(scenario, searched, finding.seconds, finding.replayed),
        exhausted=searched.exhausted,
        schedule=schedule,
        hazards=dict(_hazards(scenario, searched)),
        schedules=searched.schedules,
        seconds=finding.seconds,
        cause=cause,
        remedy=remedy_of(remedy),
        notes=tuple(notes),
        alone=opened.judge.serial.alone() if opened.judge.serial else {},
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


def _sentence(verdict: str, finding: Finding) -> str:
    if verdict == KEPT:
        broken = "this order breaks nothing", "exhausted within these bounds: no order breaks it"
        return broken[not finding.replayed]
    if finding.schedule and finding.schedule.sentences:
        return finding.schedule.sentences[0]
    if finding.searched.exhausted:
        return "every order was tried, and that decides nothing here"
    return "nothing was found, and the search did not come to its end"


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
    paused = " without a pause" * bool(scenario.faults and Fault.PAUSE in scenario.kinds)
    late = f", none late by more than {scenario.slack:g} s{paused}" if searched.timed else ""
    return f"{how} of {names}{late}, {faults} in each: {many} in {seconds:.1f} s{left or ''}"


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
