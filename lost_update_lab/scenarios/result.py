"""What an exploration found, as a value: the verdict, the sentence, the smallest schedule, how far it got."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from textwrap import fill
from typing import Any

from lost_update_lab.scenarios.schedule import Schedule
from lost_update_lab.scenarios.telling import order

WIDTH = 98
#: the words for a mutation with which no schedule was seen to break
SURVIVES, UNDECIDED, BY_A_TEST = "survives", "undecided", "a test"
#: … and for one that the explorer cannot make
NOT_TRIED = "not tried"
#: pytest's exit code if all tests pass, and none of them came to what was taken away
NOT_MADE = 20
KEPT, INCONCLUSIVE = "kept", "inconclusive"
#: the word for a scenario that cannot be explored as it is written
NOT_EXPLORED = "mistake"


@dataclass(frozen=True, slots=True)
class Mutation:
    """`kind`: what is done. `line`: of the user's code, "" for a constraint. `what`: the command, or the constraint."""

    kind: str
    line: str
    what: str

    def __str__(self) -> str:
        return f"{f'{self.line}  ' if self.line else ''}{self.kind}: {self.what}"


@dataclass(frozen=True, slots=True)
class Tried:
    """`word`: that of the first schedule that breaks without it. `survives`: no schedule does. `undecided`: `told` says
    why. `a test`: no schedule breaks, but one of the user's tests does. `not tried`: `told` says why."""

    mutation: Mutation
    word: str
    told: str = ""


@dataclass(frozen=True, kw_only=True)
class Result:
    """`verdict`: kept, violated, stalled, refused or inconclusive. `sentence`: what that means here, in words.

    `schedule`: the smallest one that breaks something; None: there is none. `exhausted`: every schedule within `bounds`
    was covered. `cause`, `remedy`: why it is inconclusive, and what would decide it. `notes`: what else to know.
    """

    name: str
    verdict: str
    sentence: str
    bounds: str
    exhausted: bool
    schedule: Schedule | None = None
    #: fault, or "contention" (none): the verdict on the schedules with this fault alone
    hazards: dict[str, str] = field(default_factory=dict)
    schedules: int = 0
    seconds: float = 0.0
    cause: str = ""
    remedy: str = ""
    notes: tuple[str, ...] = ()
    #: how to see the schedule again
    again: str = ""
    #: the pieces of its protection that were removed
    mutations: tuple[Tried, ...] = ()
    #: what each worker sends if it comes first and nobody is beside it
    alone: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: only this one schedule was run
    replayed: bool = False
    #: which part of a comparison it is (comparisons.py); and, for the comparison itself, all its parts
    part: str = ""
    parts: tuple[Result, ...] = ()

    @property
    def kept(self) -> bool:
        """Did every order within the bounds hold?"""
        return self.verdict == KEPT

    def __bool__(self) -> bool:
        """`assert explore(…)` says what it seems to say."""
        return self.kept

    @property
    def id(self) -> str:
        """The id that repeats the smallest schedule. "": there is none."""
        end = f"@{self.part}" if self.part else ""
        return f"{self.schedule.id}{end}" if self.schedule else ""

    def to_json(self) -> dict[str, Any]:
        """All fields as plain values, for `json.dumps(…, default=str)`."""
        return {**asdict(self), "kept": self.kept, "id": self.id}

    def __str__(self) -> str:
        """The verdict first, then the smallest order, then how to see it again."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.verdict}: {self.sentence}"
        yield from self._row()
        yield fill(self.bounds, WIDTH, initial_indent="  ", subsequent_indent="    ")
        if self.schedule:
            yield ""
            yield f"  The {'' if self.replayed else 'smallest '}order:"
            yield ""
            yield from (f"  {line}" for line in order(self.schedule))
            yield ""
            for sentence in (*self.schedule.sentences, *(f"{each}." for each in self.schedule.overwrites)):
                yield fill(sentence, WIDTH, initial_indent="  ", subsequent_indent="  ")
        if self.cause:
            yield fill(f"Why: {self.cause}", WIDTH, initial_indent="  ", subsequent_indent="    ")
        if self.remedy:
            told = f"What would help: {self.remedy}"
            yield fill(told, WIDTH, initial_indent="  ", subsequent_indent="    ")
        for note in self.notes:
            yield fill(f"Note: {note}", WIDTH, initial_indent="  ", subsequent_indent="    ")
        yield from self._mutations()
        if self.again:
            yield ""
            yield f"  Again: {self.again}"

    def _mutations(self) -> Iterator[str]:
        tried = [each for each in self.mutations if each.word != NOT_TRIED]
        missed = sum(each.word == SURVIVES for each in tried)
        if tried:
            survive = (
                f"{missed} survive{'s' * (missed == 1)}: no schedule misses what they remove"
                if missed
                else "none survives"
            )
            yield f"  Mutations: {len(tried)} tried, {survive}"
        for each in sorted(tried, key=lambda each: each.word != SURVIVES):
            yield f"    {each.word:10} {each.mutation}{f'  ({each.told})' if each.told else ''}"
        left = [each for each in self.mutations if each.word == NOT_TRIED]
        if left and not tried:
            yield "  Mutations: none tried"
        yield from (f"    {each.told}  ({each.mutation})" for each in left)
        if any(each.word == SURVIVES and not each.told for each in self.mutations):
            yield "    Would your tests miss them? lost-update-lab explore MODULE:SCENARIO --mutate --tests tests/"

    def _row(self) -> Iterator[str]:
        """The verdict on each part of a comparison."""
        width = max((len(each.part) for each in self.parts), default=0)
        for each in self.parts:
            yield f"  {each.part:{width}}  {each.verdict:12}  {each.schedules:5} schedules  {each.id}".rstrip()
        if self.parts:
            yield ""


class Interrupted(KeyboardInterrupt):
    """By Ctrl-C. `result`: what was seen until then; None: nothing yet."""

    def __init__(self, result: Result | None = None) -> None:
        super().__init__("nothing was explored yet" if result is None else str(result))
        self.result = result
