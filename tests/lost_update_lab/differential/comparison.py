"""Searches the same programs in two ways, and compares the ends.

An end is what each worker came to, and what the servers hold.
"""

from __future__ import annotations

import pprint
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any

from lost_update_lab.embedded.one_core import one_core
from lost_update_lab.harness import Harness
from lost_update_lab.harness.judged_runs import JudgedRuns
from lost_update_lab.model.bounds import Bounds, Fault, Reduction
from lost_update_lab.model.errors import MORE_TIME, Broken
from lost_update_lab.model.system import LEASES, Ending, Judgement, leased
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.scenarios.exploration import Opened, search
from lost_update_lab.scenarios.explore import opened
from lost_update_lab.scenarios.mistakes import examine, not_explored
from lost_update_lab.schedule.world import World
from lost_update_lab.under_test.operations import Operations, result_of
from lost_update_lab.under_test.scenario import Mistake, Scenario, Worker, invariants_of, worker
from lost_update_lab.under_test.servers import Servers
from tests.lost_update_lab.differential.writer import Case

How = Mapping[str, Any]
#: every order of every step, by real code
REFEREE: How = {"reduction": Reduction.NONE, "recorded": False}
#: the search as it is, but nothing is computed in memory, or from a recording
EXECUTED: How = {"in_memory": False, "fed": False}
UNRECORDED: How = {"recorded": False}
#: s of real time for one search of the referee
BUDGET = 20.0


@dataclass(frozen=True)
class Difference:
    """What one search came to and the other one did not."""

    case: Case
    missed: frozenset[Any]
    only_here: frozenset[Any]

    def __str__(self) -> str:
        told = [f"faults: {', '.join(self.case.faults) or 'none'}; the setup: {self.case.setup.__name__}"]
        told += [
            f"worker {name}: {pprint.pformat(each, width=110)}"
            for name, each in zip("ABC", self.case.programs, strict=False)
        ]
        for title, ends in (("missed", self.missed), ("only in the reduced search", self.only_here)):
            told += [f"{title}: {each}" for each in sorted(ends, key=repr)]
        return "\n".join(told)


@dataclass
class _Noting(Opened):
    """`how`: bounds of the search that are others than those of the scenario. `ends`: what it came to."""

    how: How = field(default_factory=dict)
    timed: bool = False
    ends: set[Any] = field(default_factory=set)

    @property
    def bounds(self) -> Bounds:
        return replace(super().bounds, **self.how)

    @contextmanager
    def harness(self, more: Sequence[Any] = ()) -> Iterator[tuple[Harness, Operations]]:
        with super().harness(more) as (harness, system):
            harness.judge = _Ends(system, harness, self)
            yield harness, system


class _Ends(JudgedRuns):
    """Notes each end of a schedule."""

    def __init__(self, system: Operations, harness: Harness, noting: _Noting) -> None:
        super().__init__(system, harness.servers)
        self.operations, self.noting = system, noting

    def __call__(self, run: World) -> Judgement:
        found = super().__call__(run)
        self.noting.ends.add((tuple(map(_told, run.endings)), run.stuck, self._held(run)))
        return found

    def _held(self, run: World) -> Hashable:
        """What the servers hold. In a family with clocks: without the times, which are others in each run."""
        held = {name: server.contents() for name, server in run.servers.items()} | {
            LEASES: leased(run.leases(), None)
        }
        if not self.noting.timed:
            return tuple(sorted(held.items()))
        left = self.operations.observed(run.endings, run.stuck, held).outcome
        keys = tuple(tuple(sorted(each.items())) for each in (left.keys.lasting, left.keys.leased))
        return tuple(sorted(left.left.rows.items())), keys


def _told(ending: Ending) -> tuple[str, str]:
    result = result_of(ending)
    how = (
        "crashed"
        if ending.crashed
        else "waits"
        if ending.waiting
        else "raised"
        if ending.error
        else "returned"
    )
    return how, type(result).__name__ if isinstance(result, BaseException) else repr(result)


def ends(
    case: Case, servers: Servers, how: How, budget: float = BUDGET
) -> tuple[SearchResult, frozenset[Any]]:
    """Search it. Raises Mistake: it is refused."""
    scenario = _scenario(case, budget)
    with one_core(), opened(scenario, servers, True, (), ()) as ready:
        given = {each.name: getattr(ready, each.name) for each in fields(Opened) if each.init}
        noting = _Noting(**given, how=how, timed=case.family.timed)

        def begins(serial: Any) -> None:
            examine(noting, serial)
            noting.ends.clear()  # those of the serial orders

        try:
            found = search(noting, begins)
        except Broken as error:
            raise not_explored(error) from error
        return found.searched, frozenset(noting.ends)


def _scenario(case: Case, budget: float) -> Scenario:
    faults = frozenset(case.faults)
    return Scenario(
        name="differential",
        workers=tuple(_workers(case)),
        setups=(case.setup,),
        invariants=invariants_of((lambda: True, "nothing is asked")),
        faults=case.family.count if faults else 0,
        kinds=faults or frozenset(Fault),
        budget=budget,
        control=False,
    )


def _workers(case: Case) -> Iterator[Worker]:
    for number, programs in enumerate(case.programs):
        own = 10 * (number + 1)
        first, *more = [(case.family.operation, each, own + place) for place, each in enumerate(programs)]
        made = worker("ABC"[number], *first)
        for each in more:
            made = made.then(*each)
        yield made


#: the search may take so many times as long as the other one: on a busy machine most of a family were cut short
LONGER = 3


def compared(case: Case, servers: Servers, other: How = REFEREE, budget: float = BUDGET) -> Difference | str:
    """How the search differs from the `other` one; or, in words, that it does not, or why nothing can be said."""
    try:
        result, found = ends(case, servers, {}, LONGER * budget)
    except Mistake as error:
        return f"{REFUSED} {error}"
    if not result.exhausted:
        return f"{CUT_SHORT} {result.cause}"
    try:
        referee, expected = ends(case, servers, other, budget)
    except Mistake as error:  # on a busy machine the serial orders alone may take so long
        if getattr(error.__cause__, "remedy", "") != MORE_TIME:
            raise
        return f"{CUT_SHORT} the other one: {error}"
    missed, only_here = expected - found, found - expected if referee.exhausted else frozenset()
    if missed or only_here:
        return Difference(case, missed, only_here)
    cut = "" if referee.exhausted else f", and the other was cut short: {referee.cause}"
    return f"the same {len(found)} ends of {result.schedules} and {referee.schedules} schedules{cut}"


#: how a sentence begins that says why nothing was compared
REFUSED, CUT_SHORT = "refused:", "cut short:"
