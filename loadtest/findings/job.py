"""A job: what to explore, and within which bounds. Plain values that can cross processes."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

from ledger.stores import STORES
from ledger.strategies import find
from loadtest.verdict.words import Word
from loadtest.workloads import EXPLORED
from locks.hazards import Hazard
from lost_update_lab.model.bounds import MS, Bounds
from lost_update_lab.schedule.schedule_id import decode, encode

EXHAUSTED, DECIDED = "exhausted", "decided"
#: letter in a replay id → how the schedule breaks a law, or that it shows an error
BREACH_WORDS = {word.letter.lower(): str(word) for word in Word if word.is_breach} | {
    "i": str(Word.INCONCLUSIVE)
}
_BOUNDS = re.compile(
    rf"([{''.join(BREACH_WORDS)}])((?:[wfmt]\d+)*)({'|'.join(EXPLORED)})?(?:@({'|'.join(STORES)}))?"
)
_REMEDY = "An id looks like naive-lock/l/3a2: strategy, bounds, schedule (explore.json has them)"


@dataclass(frozen=True, kw_only=True)
class Job:
    """`work`, `slack`: ms of virtual time. `budget`: seconds of real time. `choices`: replay only this schedule.
    `until`: EXHAUSTED, or DECIDED, which leaves an unclaimed hazard at the first schedule that loses money. `gates`:
    gates for client libraries that the explorer does not know, as module:callable. `store`: where the accounts are
    kept; "": on PostgreSQL, if they can be."""

    strategy: str
    workload: str = "deposits"
    workers: int = 2
    faults: int = 1
    work: int = 0
    slack: int = 100
    budget: float | None = None
    choices: tuple[int, ...] | None = None
    expected: str = ""
    until: str = EXHAUSTED
    gates: tuple[str, ...] = ()
    #: workers are processes of one host, and share its files
    one_machine: bool = False
    #: return every position instead of a verdict
    positions: bool = False
    store: str = ""

    @property
    def where(self) -> str:
        """The store that keeps the accounts."""
        stores = find(self.strategy).stores
        return self.store or ("postgres" if "postgres" in stores else stores[0])

    @property
    def claims(self) -> frozenset[Hazard]:
        """What the strategy claims to withstand there."""
        return find(self.strategy).claims_on(self.where)

    @property
    def bounds(self) -> Bounds:
        """Raises ValueError for bounds that make no sense."""
        return Bounds(workers=self.workers, faults=self.faults, slack=self.slack * MS, budget=self.budget)

    def replay_id(self, verdict: str, choices: tuple[int, ...]) -> str:
        """Return a short text that repeats a schedule anywhere. It contains only the values that are not defaults."""
        letter = next(letter for letter, word in BREACH_WORDS.items() if word == verdict)
        values = (("w", self.workers, 2), ("f", self.faults, 1), ("m", self.work, 0), ("t", self.slack, 100))
        bounds = "".join(f"{name}{value}" for name, value, usual in values if value != usual)
        workload = "" if self.workload == "deposits" else self.workload
        store = f"@{self.store}" if self.store else ""
        return f"{self.strategy}/{letter}{bounds}{workload}{store}/{encode(choices)}"

    @classmethod
    def of_replay_id(cls, text: str) -> Job:
        """Parse a replay id. Raises ValueError, which shows what one looks like."""
        strategy, _, rest = text.partition("/") if text.count("/") == 2 else ("", "", "")
        head, _, schedule = rest.partition("/")
        found = _BOUNDS.fullmatch(head)
        if not strategy or found is None:
            raise ValueError(f"not a schedule id: {text!r}. {_REMEDY}")
        names = {"w": "workers", "f": "faults", "m": "work", "t": "slack"}
        values: dict[str, Any] = {
            names[name]: int(value) for name, value in re.findall(r"([wfmt])(\d+)", found[2])
        }
        if found[3]:
            values["workload"] = found[3]
        if found[4]:
            values["store"] = found[4]
        try:
            choices = tuple(decode(schedule))
        except ValueError as error:
            raise ValueError(f"not a schedule id: {text!r} ({error}). {_REMEDY}") from error
        return cls(strategy=strategy, choices=choices, expected=BREACH_WORDS[found[1]], **values)

    def as_json(self) -> dict[str, Any]:
        values = asdict(self) | {"gates": list(self.gates)}  # a list, as after a round trip through JSON
        return {
            name: values[name]
            for name in (
                "workload",
                "workers",
                "faults",
                "work",
                "slack",
                "budget",
                "until",
                "gates",
                "store",
                "one_machine",
            )
        }
