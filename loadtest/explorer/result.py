"""What a search has found: verdicts, counterexamples, and how far it got."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from loadtest.explorer.bounds import Bounds, Fault
from loadtest.explorer.ops import Step
from loadtest.explorer.options import STEPS, Option
from loadtest.explorer.subject import GRAVITY, Judgement

#: the faults of one schedule, sorted
Faults = tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A finished schedule with its verdict: a counterexample, if the verdict is not `kept`."""

    judgement: Judgement
    faults: Faults
    choices: tuple[int, ...]
    options: tuple[Option, ...]
    steps: tuple[Step, ...]
    #: what the servers held after each step, where somebody looked (witness.py)
    states: tuple[dict[str, Any], ...] = ()

    @property
    def verdict(self) -> str:
        return self.judgement.verdict

    @property
    def switches(self) -> int:
        """How often another worker goes on."""
        who = [option.who for option in self.options if option.kind in STEPS]
        return sum(1 for before, after in pairwise(who) if before != after)

    @property
    def size(self) -> tuple[int, int, int]:
        """The smaller, the easier to read."""
        return len(self.faults), self.switches, len(self.options)


@dataclass
class Result:
    """`exhausted`: every schedule within the bounds was covered; if not, `cause` says what cut it short.

    `counts`: how many finished schedules had this verdict under these faults. `found`: the smallest of each.
    """

    bounds: Bounds
    exhausted: bool = False
    cause: str = ""
    remedy: str = ""
    schedules: int = 0
    steps: int = 0
    states: int = 0
    seconds: float = 0.0
    fired: set[Fault] = field(default_factory=set)
    applicable: set[Fault] = field(default_factory=set)
    counts: dict[tuple[str, Faults], int] = field(default_factory=dict)
    found: dict[tuple[str, Faults], Found] = field(default_factory=dict)
    finals: set[bytes] = field(default_factory=set)

    def add(self, found: Found) -> None:
        key = found.verdict, found.faults
        self.counts[key] = self.counts.get(key, 0) + 1
        if key not in self.found or found.size < self.found[key].size:
            self.found[key] = found

    @property
    def verdicts(self) -> dict[str, int]:
        """How many finished schedules had which verdict."""
        sums: dict[str, int] = {}
        for (verdict, _), count in self.counts.items():
            sums[verdict] = sums.get(verdict, 0) + count
        return sums

    @property
    def worst(self) -> str:
        """The gravest verdict of any schedule."""
        return gravest(self.verdicts)

    def under(self, fault: Fault | None) -> str:
        """The gravest verdict of schedules with no other fault than this (None: with no fault at all)."""
        return gravest(v for v, faults in self.counts if set(faults) == ({fault} if fault else set()))

    def smallest(self, verdict: str, fault: Fault | str | None = "any") -> Found | None:
        """The smallest schedule with this verdict; `fault` as in `under`, "any": whatever the faults."""
        wanted = None if fault == "any" else ({fault} if fault else set())
        fitting = [
            f for (v, faults), f in self.found.items() if v == verdict and wanted in (None, set(faults))
        ]
        return min(fitting, key=lambda found: found.size, default=None)


def gravest(verdicts: object) -> str:
    """The gravest of these words; `kept` if there are none."""
    present = set(verdicts)  # type: ignore[call-overload]
    return next((word for word in GRAVITY if word in present), "kept")
