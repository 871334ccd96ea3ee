"""What a search has found: broken laws, counterexamples, and how far it got."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lost_update_lab.model.bounds import Bounds, Fault
from lost_update_lab.model.commands import Step
from lost_update_lab.model.system import UNBROKEN, Judgement
from lost_update_lab.model.transitions import STEPS, Kind, Transition
from lost_update_lab.schedule.world import World

#: the faults of one schedule, sorted
Faults = tuple[Fault, ...]


#: faults, switches between workers, decisions, turns (Extent): the smaller, the easier to read
Size = tuple[int, int, int, int]


class Extent:
    """How far a schedule, or its beginning, extends. It only grows. `switches`: how often another worker goes on.
    `turns`: how often the reader has to look at another one, also where that only comes to the end of its pause."""

    def __init__(self, transitions: Iterable[Transition] = ()) -> None:
        self.decisions = self.switches = self.turns = 0
        self._last = self._turn = ""
        for transition in transitions:
            self.add(transition)

    def add(self, transition: Transition) -> None:
        self.decisions += 1
        if transition.kind in STEPS:
            self.switches += self._last not in ("", transition.who)
            self._last = transition.who
        if transition.kind in STEPS or transition.kind is Kind.RESUME:
            worker = transition.who.partition(".")[0]
            self.turns += self._turn not in ("", worker)
            self._turn = worker

    def size(self, faults: Sequence[Fault]) -> Size:
        return len(faults), self.switches, self.decisions, self.turns


@dataclass(frozen=True, slots=True)
class Found:
    """A finished schedule and its verdict. It is a counterexample if a law is broken."""

    judgement: Judgement
    faults: Faults
    choices: tuple[int, ...]
    transitions: tuple[Transition, ...]
    steps: tuple[Step, ...]
    #: the virtual time of each decision, in µs, if a search found it
    times: tuple[int, ...] = ()
    #: what the servers held before the first step and after each, where that was recorded (annotate.py)
    states: tuple[dict[str, Any], ...] = ()

    @property
    def word(self) -> str:
        return self.judgement.word

    @property
    def switches(self) -> int:
        return Extent(self.transitions).switches

    def overlaps(self, workers: int) -> bool:
        """Did one worker come between two steps of another? An operation of a single command has no "between". It
        overlaps another one that stood at its gate meanwhile, as every operation does that has begun."""
        who = [transition.who for transition in self.transitions if transition.kind in STEPS]
        single = len(set(who)) == len(who) > 1
        return single or self.switches >= workers

    def same_as(self, other: Found) -> bool:
        """Does it break the same law by the same faults?"""
        return (self.word, self.faults) == (other.word, other.faults)

    @property
    def size(self) -> Size:
        return Extent(self.transitions).size(self.faults)


@dataclass
class SearchResult:
    """`exhausted`: every schedule within the bounds was covered. If not, `cause` says what cut the search short.

    `gravity`: the judge's words, gravest first. `counts`: the number of finished schedules with this word under these
    faults. `found`: the smallest schedule of each.
    """

    bounds: Bounds
    gravity: Sequence[str]
    exhausted: bool = False
    #: the search came to its end; for faults that are not claimed, perhaps only to the first schedule that loses money
    settled: bool = False
    cause: str = ""
    remedy: str = ""
    #: the clients that talked to a server past the gates: nothing that was seen counts
    gone_around: str = ""
    #: where a thread hung, as a Python traceback
    trace: str = ""
    schedules: int = 0
    #: how many of them ran no worker's code (recording.py)
    played: int = 0
    #: how many of them were computed from known steps, and not executed (in_memory_run.py)
    in_memory: int = 0
    steps: int = 0
    states: int = 0
    seconds: float = 0.0
    fired: set[Fault] = field(default_factory=set)
    applicable: set[Fault] = field(default_factory=set)
    counts: dict[tuple[str, Faults], int] = field(default_factory=dict)
    found: dict[tuple[str, Faults], Found] = field(default_factory=dict)
    #: faults (None: no fault) for which every schedule with that fault alone was covered
    decided: set[Fault | None] = field(default_factory=set)
    finals: set[bytes] = field(default_factory=set)
    #: finished schedules in which operations overlapped (Found.overlaps)
    overlapping: int = 0
    #: schedules that were left at a deadlock (Bounds.deadlocks)
    left_in_deadlock: int = 0
    #: the most transactions that one worker's others have committed in a schedule
    others_committed: int = 0
    #: in one of them several workers have sent a command
    several: bool = False
    #: the most commands, of all workers, in one of them
    commands: int = 0
    #: in one of them, time has passed: how late a worker may be has counted
    timed: bool = False
    #: server → how its clock, by which something was decided, was made virtual
    virtual_clocks: dict[str, str] = field(default_factory=dict)
    #: what else the servers have to say
    notes: list[str] = field(default_factory=list)

    def counted(self, world: World) -> None:
        """A schedule was executed, as far as it was new."""
        self.schedules += 1
        self.steps += len(world.steps)
        self.applicable |= world.applicable
        self.timed |= world.now > 0
        commits = [worker.commits + worker.crashed for worker in world.workers]  # what it sent may go through
        self.others_committed = max(self.others_committed, sum(commits) - min(commits))

    def judged(self, found: Found, world: World, final: bytes) -> None:
        """A schedule came to its end. `final`: what everyone could see then."""
        self.fired.update(world.spent)
        sent = [step.worker for step in world.steps if step.kind == "step"]
        self.several |= len(set(sent)) > 1
        self.commands = max(self.commands, len(sent))
        self.finals.add(final)
        self.add(found)

    def add(self, found: Found) -> None:
        key = found.word, found.faults
        self.counts[key] = self.counts.get(key, 0) + 1
        self.overlapping += found.overlaps(self.bounds.workers)
        if key not in self.found or found.size < self.found[key].size:
            self.found[key] = found

    @property
    def words(self) -> dict[str, int]:
        """The number of finished schedules for each word."""
        sums: dict[str, int] = {}
        for (word, _), count in self.counts.items():
            sums[word] = sums.get(word, 0) + count
        return sums

    @property
    def figures(self) -> dict[str, Any]:
        """How much was done, and what it came to, as plain values."""
        names = ("schedules", "played", "states", "steps")
        return {**{name: getattr(self, name) for name in names}, "words": self.words}

    @property
    def worst(self) -> str:
        """The gravest word of all schedules."""
        return self._gravest(self.words)

    def under(self, fault: Fault | None) -> str:
        """The gravest word of the schedules with this fault only (None: without any fault)."""
        return self._gravest(
            word for word, faults in self.counts if set(faults) == ({fault} if fault else set())
        )

    def combined(self) -> Found | None:
        """The smallest schedule of the gravest word, if no single fault leads to that word."""
        found = self.smallest(self.worst)
        return found if found and len(found.faults) > 1 else None

    def smallest(self, word: str, fault: Fault | str | None = "any") -> Found | None:
        """The smallest schedule with this word. `fault`: as in `under`; "any": whatever the faults."""
        wanted = None if fault == "any" else ({fault} if fault else set())
        fitting = [
            f for (its, faults), f in self.found.items() if its == word and wanted in (None, set(faults))
        ]
        return min(fitting, key=lambda found: found.size, default=None)

    def _gravest(self, words: Iterable[str]) -> str:
        """The gravest of these words; `unbroken` if there are none."""
        present = set(words)
        return next((word for word in self.gravity if word in present), UNBROKEN)
