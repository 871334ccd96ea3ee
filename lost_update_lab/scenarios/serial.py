"""The serial orders: one operation after the other, and none concurrent. Their outcomes define what is right.

So no invariant has to be written. If a schedule's results and final rows fit no serial order, two callers could not
have produced them if each had been alone.

Time may pass between two callers: a rate limiter lets the second one in when the first one's minute is over. So each
order is also run with leases that end between its workers. Such an order counts for the schedules in which the same
leases ended between the same workers, and for no other (model/gaps.py).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from typing import Any

from lost_update_lab.harness import Harness
from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.commands import GOES_ON, Op, Step
from lost_update_lab.model.gaps import AN_HOUR, Gap, Lease
from lost_update_lab.model.system import PASSED, Judgement
from lost_update_lab.model.transitions import Kind, Transition
from lost_update_lab.model.workers import State, Task
from lost_update_lab.runs.run import Run
from lost_update_lab.scenarios.unordered import unordered
from lost_update_lab.schedule import virtual_clock
from lost_update_lab.schedule.world import World
from lost_update_lab.under_test.drawn import NOT_MEASURED, Place, measured
from lost_update_lab.under_test.fresh import constants
from lost_update_lab.under_test.keys_left import LEASED_KEY
from lost_update_lab.under_test.operations import FinalState, FinishedSchedule, Operations
from lost_update_lab.under_test.outcome import Outcome
from lost_update_lab.under_test.results import calls_of

#: the most orders of operations that are run
MOST_ORDERS = 800
#: … besides these, in which leases end between workers
MOST_WITH_GAPS = 400
#: how far the clocks run ahead where an order is run once more, in µs: no second is the same
AHEAD = 1_618_034


@dataclass(frozen=True, slots=True)
class Serial:
    """`order`: the numbers of the workers in the order of their operations. `gaps`: the leases that ended in between,
    with those workers of the order that came before."""

    order: tuple[int, ...]
    observed: FinishedSchedule
    #: the judge's verdict, if it can be given already
    judgement: Judgement
    #: what the servers held at its end
    left: FinalState
    #: the turns of its tasks (InOrder)
    turns: tuple[int, ...] = ()
    steps: tuple[Step, ...] = ()
    #: as in World, if the run was followed
    commands: tuple[tuple[Op, str], ...] = ()
    gaps: tuple[Gap, ...] = ()
    #: how often each thread has looked at its wall clock
    looks_of: Mapping[str, int] = field(default_factory=dict)

    def fits(self, others: Collection[Gap]) -> bool:
        """Did the same leases end between the same workers in a schedule with these gaps?"""
        return all(any(self._fits(here, there) for there in others) for here in self.gaps)

    def _fits(self, here: Gap, there: Gap) -> bool:
        """Before an hour in which no lease ends, and that comes once, one that has changed nothing may come too."""
        ended, before = {*there.ended}.intersection(self.order), {*here.ended}
        return here.lease == there.lease and (ended == before or (here.lease == AN_HOUR and ended < before))

    @property
    def outcome(self) -> Outcome:
        return self.observed.outcome

    @property
    def passed(self) -> int:
        """How much time passes in it, in µs."""
        return self.steps[-1].at if self.steps else 0


def orders(operations: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All orders of this many operations of each worker. Each worker's own operations stay in their order."""
    if not any(operations):
        yield ()
    for index, left in enumerate(operations):
        if left:
            rest = [count - (place == index) for place, count in enumerate(operations)]
            yield from ((index, *others) for others in orders(rest))


def prefixes(operations: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """How many operations of each worker may have happened if some were cut short, most first."""
    yield from sorted(product(*(range(count + 1) for count in operations)), key=lambda counts: -sum(counts))


class InOrder:
    """A chooser: it takes the operations of `order`, one after the other; then the run is over. `turns`: its choices.
    If a worker's event loop has several tasks, these too go one after the other: which of those that have not begun is
    next? If `waits`: how many of the leases that exist end before the next worker begins? `looks`: workers look at a
    clock. `taken`: what was chosen each time, and of how many. `interleaved`: the workers where one task had to go on
    while another one was not done."""

    def __init__(
        self,
        system: Operations,
        order: Sequence[int],
        turns: Sequence[int] = (),
        waits: bool = False,
        looks: bool = False,
    ) -> None:
        self.system, self.order, self.turns, self.waits, self.looks = system, order, turns, waits, looks
        self.interleaved: set[str] = set()
        #: there was something to wait for
        self.may_wait = False
        self.begin()

    def begin(self) -> None:
        """The run begins."""
        self.taken: list[tuple[int, int]] = []
        self.begun: set[int] = set()
        self.gaps: list[Gap] = []

    def __call__(self, run: World, transitions: Sequence[Transition]) -> int:
        left = list(self.order)
        for index, done in enumerate(self.system.done):
            for _ in range(done):
                if index in left:
                    left.remove(index)
        whole = len(self.order) == sum(len(each.operations) for each in self.system.scenario.callers)
        left = [index for index in left if not run.workers[index].finished]
        may_go_on = [each for each in left if not virtual_clock.polls_in_vain(run, run.workers[each])]
        if not may_go_on and (left or not whole):
            run.stuck = True
            return 0
        for index in may_go_on:
            steps = [
                place
                for place, transition in enumerate(transitions)
                if transition.kind in (Kind.STEP, Kind.CANCEL)
                and run.task(transition.who).worker.index == index
            ]
            if steps:
                if index not in self.begun:
                    self._begins(run, index, left)
                return self._next(run, transitions, steps)
            timers = [place for place, transition in enumerate(transitions) if transition.kind is Kind.TICK]
            if timers and index == may_go_on[0]:
                run.stuck = virtual_clock.only_polls(run)
                return timers[0]
        return 0

    def _begins(self, run: World, index: int, left: Collection[int]) -> None:
        """This worker takes its first step. If every other one that has begun is done, time may pass before."""
        if self.begun.isdisjoint(left):
            ends = [*sorted({*run.leases().values()}), *self._hour(run)]
            self.may_wait |= bool(ends)
            for end in ends[: self._choice(len(ends) + 1) if self.waits else 0]:
                over = virtual_clock.pass_to(run, end) or [AN_HOUR]
                self.gaps += [Gap(lease, tuple(sorted(self.begun))) for lease in over]
        self.begun.add(index)

    def _hour(self, run: World) -> list[int]:
        """When an hour has passed, if that makes a difference (virtual_clock.next_timer)."""
        looks = (
            (self.looks or virtual_clock.shows_time(run))
            and Fault.PAUSE in run.bounds.kinds
            and run.now < run.bounds.aside
        )
        return [run.bounds.aside] if looks else []

    def _next(self, run: World, transitions: Sequence[Transition], steps: Sequence[int]) -> int:
        first, last = run.task(transitions[steps[0]].who), run.last
        if first is last or not first.worker.order:
            return steps[0]
        if last and last.worker is first.worker and _is_not_done(last):
            self.interleaved.add(first.worker.name)
        local = [place for place in steps if (op := run.task(transitions[place].who).op) and op.local]
        if local or len(steps) == 1 or first.op is GOES_ON:
            return [*local, *steps][0]
        return steps[min(self._choice(len(steps)), len(steps) - 1)]

    def _choice(self, count: int) -> int:
        turn = self.turns[len(self.taken)] if len(self.taken) < len(self.turns) else 0
        self.taken.append((turn, count))
        return turn


def _leased(found: Iterable[tuple[Place, Any]]) -> Mapping[str, list[Any]]:
    """By the shape of their keys, the values with a lease."""
    values = defaultdict[str, list[Any]](list)
    for place, value in found:
        if place[0] == LEASED_KEY and len(place) == 2:
            values[str(place[1])].append(value)
    return values


def _text(value: tuple[Place, Any]) -> str:
    return json.dumps(value[1], default=str)


def _is_not_done(task: Task) -> bool:
    """Does it sleep, or wait in a server?"""
    return task.state is State.BLOCKED or (task.state is State.WAIT and task.until is not None)


class SerialOrders:
    """Runs each order once, all of them before the search: during it the servers hold what the search has left."""

    def __init__(self, harness: Harness, system: Operations) -> None:
        self.harness, self.system = harness, system
        self.operations = [len(each.operations) for each in system.scenario.callers]
        self._known: dict[tuple[int, ...], list[Serial]] = {}
        #: those in which leases existed when a worker began
        self._may_wait: dict[tuple[int, ...], None] = {}
        self.closed = False
        #: some worker looks at a wall clock
        self.looks = False
        #: the leases of which it counts whether they end between two workers
        self.counted: Collection[Lease] = ()
        #: the workers whose tasks could not be run one after the other
        self.interleaved: set[str] = set()
        #: globals of modules that a second run of the same order has changed (modules.py)
        self.remembered: list[str] = []
        #: locks of this process that the operations hold while they run, in a sentence (meanwhile.py)
        self.meanwhile = ""
        #: what the operations carry with them that the first runs have changed (carried.py)
        self.carried: list[str] = []
        #: by worker whose task is delivered twice: what the second delivery calls when the first one is done
        self.calls_again: dict[int, Mapping[str, int]] = {}

    def close(self) -> None:
        """Run all orders that may be asked for, those with gaps last. A search that begins now notes these gaps."""
        for counts in prefixes(self.operations):
            self.of(counts)
        for index, count in enumerate(self.operations):
            if self.system.scenario.twice:
                self.calls_again[index] = self._second_calls(index, count)
        found: list[Serial] = []
        for order in self._may_wait:
            runs = self._of_all_tasks(order, MOST_WITH_GAPS - len(found), waits=True)
            more = [serial for serial in runs if serial.gaps]
            self._known[tuple(map(order.count, range(len(self.operations))))] += more
            found += more
        self.counted = self.harness.counted = frozenset(gap.lease for each in found for gap in each.gaps)
        if self._measure():
            self._known = {counts: list(map(self._anew, of)) for counts, of in self._known.items()}
        self.closed = True

    def _anew(self, serial: Serial) -> Serial:
        """The same order, by what is known by now."""
        before = serial.outcome.keys.undisturbed
        outcome = self.system.outcome(serial.observed.endings, serial.left, before)
        return replace(serial, observed=replace(serial.observed, outcome=outcome))

    def _measure(self) -> bool:
        """Which values does a run make anew? Those that are others if its clocks run ahead, and if other random numbers
        and numbers of sequences are drawn (fresh.py, drawn.py). Returns whether that makes a difference."""
        system, known, moving = self.system, set(self.system.known), set[Any]()
        once = [(serial, list(self._came_to(serial))) for serial in self.all() if not serial.gaps]
        drawing = {(each.title, name) for each in system.database.tables for name in each.meaningless}
        last = system.database.last_drawn()
        if not (last or any(self._may_be_fresh(*value, drawing) for _, found in once for value in found)):
            return False
        pairs = [(found, self._otherwise(serial)) for serial, found in once]
        system.database.restore()
        for found, again in pairs:
            known |= constants(map(_text, found)) & constants(map(_text, again))
            one, two = map(_leased, (found, again))
            moving |= {shape for shape in one.keys() | two.keys() if one.get(shape) != two.get(shape)}
        drawn = NOT_MEASURED
        if system.ahead:
            drawn = measured(pairs, system.ahead, last, drawing)
        system.knows(frozenset(known), frozenset(moving), drawn)
        return True

    def _came_to(self, serial: Serial) -> Iterator[tuple[Place, Any]]:
        return self.system.came_to(serial.observed.endings, serial.left)

    def _may_be_fresh(self, place: Place, value: Any, drawing: Collection[Place]) -> bool:
        """`drawing`: the columns that draw by default."""
        if place[0] == LEASED_KEY or place in drawing:
            return True
        return any(each not in self.system.known for each in constants([_text((place, value))]))

    def _otherwise(self, serial: Serial) -> list[tuple[Place, Any]]:
        """What an order comes to with other times, random keys and numbers of sequences."""
        self.harness.ahead, self.harness.salt, self.system.draws_ahead = AHEAD, "again", True
        try:
            chooser = InOrder(self.system, serial.order, serial.turns)
            run = self.harness.until_known(partial(self._once, chooser, None))
            return list(self.system.came_to(run.endings, self.system.looked()))
        finally:
            self.harness.ahead, self.harness.salt, self.system.draws_ahead = 0, "", False

    def _second_calls(self, index: int, count: int) -> Mapping[str, int]:
        again = self.system.scenario.again(index)
        assert again is not None
        self.harness.all_begin = True
        try:
            endings = self.run((index,) * count + (again,) * count).observed.endings
        finally:
            self.harness.all_begin = False
        return calls_of(endings[again].result)

    @cached_property
    def unordered(self) -> Mapping[str, str]:
        """By worker, a command of it that returns rows in no order. They are asked for once all orders were run."""
        return unordered(step for serial in self.all() for step in serial.steps)

    def alone(self) -> dict[str, tuple[str, ...]]:
        """By worker, what it sends in an order in which it comes first."""
        names, found = list(self.system.scenario.names), dict[str, tuple[str, ...]]()
        for serial in self.all():
            first = names[serial.order[0]]
            found.setdefault(first, tuple(step.command for step in serial.steps if step.worker == first))
        return {self.system.scenario.names[each]: sent for each, sent in sorted(found.items())}

    def all(self) -> list[Serial]:
        """The orders in which every operation happens."""
        return self.of(tuple(self.operations))

    def of(self, counts: tuple[int, ...]) -> list[Serial]:
        """The orders in which this many operations of each worker happen."""
        if counts not in self._known and not self.closed:
            found: list[Serial] = []
            for order in orders(counts):
                if len(found) >= MOST_ORDERS:
                    break
                found += self._of_all_tasks(order, MOST_ORDERS - len(found))
            self._known[counts] = found
        return self._known.get(counts, [])

    def _of_all_tasks(self, order: tuple[int, ...], most: int, waits: bool = False) -> Iterator[Serial]:
        """The same order of operations, with each order of the tasks in them. `waits`: and with each gap."""
        turns: list[int] = []
        for _ in range(most):
            chooser = InOrder(self.system, order, turns, waits, self.looks)
            yield self._run(chooser, None)
            if chooser.may_wait:
                self._may_wait[order] = None
            taken = chooser.taken
            while taken and taken[-1][0] + 1 >= taken[-1][1]:
                taken.pop()
            if not taken:
                return
            turns = [turn for turn, _ in taken]
            turns[-1] += 1

    def run(self, order: tuple[int, ...], trace: Callable[..., None] | None = None) -> Serial:
        return self._run(InOrder(self.system, order), trace)

    def _run(self, chooser: InOrder, trace: Callable[..., None] | None) -> Serial:
        order, run = tuple(chooser.order), self.harness.until_known(partial(self._once, chooser, trace))
        self.interleaved |= chooser.interleaved
        self.looks |= run.wall_clock_read
        contents = {name: server.contents() for name, server in self.harness.servers.items()}
        contents |= {PASSED: b"1"} if run.now else {}
        left = self.system.looked()
        observed = self.system.observed(run.endings, run.stuck, contents, left)
        judged = self.system.judge_by(observed)
        return Serial(
            order,
            observed,
            judged,
            left,
            tuple(chooser.turns),
            tuple(run.steps),
            tuple(run.commands),
            tuple(chooser.gaps),
            dict(run.looks_of),
        )

    def _once(self, chooser: InOrder, trace: Callable[..., None] | None) -> Run:
        chooser.begin()
        self.harness.one_by_one = True
        try:
            with self.harness.unnoted():
                return self.harness.run(chooser, {}, trace)
        finally:
            self.harness.one_by_one = False
