"""The serial orders: one operation after the other, and none concurrent. Their outcomes define what is right.

So no invariant has to be written. If a schedule's results and final rows fit no serial order, two callers could not
have produced them if each had been alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from lost_update_lab.harness import Harness
from lost_update_lab.model.commands import GOES_ON, Step
from lost_update_lab.model.system import Judgement
from lost_update_lab.model.transitions import Kind, Transition
from lost_update_lab.model.workers import State, Task
from lost_update_lab.runs.run import Run
from lost_update_lab.schedule import virtual_clock
from lost_update_lab.schedule.world import World
from lost_update_lab.subject.operations import Observed, Operations
from lost_update_lab.subject.outcome import Outcome

#: the most orders of operations that are run
MOST_ORDERS = 800


@dataclass(frozen=True, slots=True)
class Serial:
    """`order`: the numbers of the workers in the order of their operations."""

    order: tuple[int, ...]
    observed: Observed
    #: the judge's verdict, if it can be given already
    judgement: Judgement
    steps: tuple[Step, ...] = ()

    @property
    def outcome(self) -> Outcome:
        return self.observed.outcome


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
    """A chooser: it takes the operations of `order`, one after the other; then the run is over. If a worker's event
    loop has several tasks, these too go one after the other, in the order of `turns`: which of those that have not
    begun is next. `taken`: what was chosen each time, and of how many. `interleaved`: the workers where one task had to
    go on while another one was not done."""

    def __init__(self, system: Operations, order: Sequence[int], turns: Sequence[int] = ()) -> None:
        self.system, self.order, self.turns = system, order, turns
        self.taken: list[tuple[int, int]] = []
        self.interleaved: set[str] = set()

    def __call__(self, run: World, transitions: Sequence[Transition]) -> int:
        left = list(self.order)
        for index, done in enumerate(self.system.done):
            for _ in range(done):
                if index in left:
                    left.remove(index)
        whole = len(self.order) == sum(len(each.operations) for each in self.system.scenario.workers)
        left = [index for index in left if not run.workers[index].finished]
        if not left and not whole:
            run.stuck = True
            return 0
        for index in left:
            steps = [
                place
                for place, transition in enumerate(transitions)
                if transition.kind in (Kind.STEP, Kind.CANCEL)
                and run.task(transition.who).worker.index == index
            ]
            if steps:
                return self._next(run, transitions, steps)
            timers = [place for place, transition in enumerate(transitions) if transition.kind is Kind.TICK]
            if timers and index == left[0]:
                run.stuck = virtual_clock.only_polls(run)
                return timers[0]
        return 0

    def _next(self, run: World, transitions: Sequence[Transition], steps: Sequence[int]) -> int:
        first, last = run.task(transitions[steps[0]].who), run.last
        if first is last or not first.worker.order:
            return steps[0]
        if last and last.worker is first.worker and _is_not_done(last):
            self.interleaved.add(first.worker.name)
        if len(steps) == 1 or first.op is GOES_ON:
            return steps[0]
        turn = self.turns[len(self.taken)] if len(self.taken) < len(self.turns) else 0
        self.taken.append((turn, len(steps)))
        return steps[min(turn, len(steps) - 1)]


def _is_not_done(task: Task) -> bool:
    """Does it sleep, or wait in a server?"""
    return task.state is State.BLOCKED or (task.state is State.WAIT and task.until is not None)


class SerialOrders:
    """Runs each order once, all of them before the search: during it the servers hold what the search has left."""

    def __init__(self, harness: Harness, system: Operations) -> None:
        self.harness, self.system = harness, system
        self.operations = [len(each.operations) for each in system.scenario.workers]
        self._known: dict[tuple[int, ...], list[Serial]] = {}
        self.closed = False
        #: the workers whose tasks could not be run one after the other
        self.interleaved: set[str] = set()
        #: globals of modules that a second run of the same order has changed (modules.py)
        self.remembered: list[str] = []
        #: what the operations carry with them that the first runs have changed (carried.py)
        self.carried: list[str] = []

    def close(self) -> None:
        """Run all orders that may be asked for."""
        for counts in prefixes(self.operations):
            self.of(counts)
        self.closed = True

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

    def _of_all_tasks(self, order: tuple[int, ...], most: int) -> Iterator[Serial]:
        """The same order of operations, with each order of the tasks in them."""
        turns: list[int] = []
        for _ in range(most):
            chooser = InOrder(self.system, order, turns)
            yield self._run(chooser, None)
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
        contents = {name: server.contents() for name, server in self.harness.servers.items()}
        observed = self.system.observed(run.endings, run.stuck, contents)
        return Serial(order, observed, self.system.judge_by(observed), tuple(run.steps))

    def _once(self, chooser: InOrder, trace: Callable[..., None] | None) -> Run:
        chooser.taken.clear()
        with self.harness.unnoted():
            return self.harness.run(chooser, {}, trace)
