"""Pairs of operations that touch the same rows or keys, where one of them writes; most dangerous first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement

from lost_update_lab.suggest.keys import AT_ONCE, READS, WRITES
from lost_update_lab.suggest.recording import RecordedCommand
from lost_update_lab.suggest.touching import TAKES_LOCK, Use, uses

_SCHEMA = re.compile(r"\s*(?:CREATE|ALTER|DROP|TRUNCATE|GRANT)\b", re.IGNORECASE)

#: how dangerous an operation is for a thing that it touches
BY_WHAT_IT_READ, BLINDLY, IN_ONE, ONLY_READS = 4, 3, 1, 0
WHY = {
    BY_WHAT_IT_READ: "reads it without a lock, and then writes it",
    BLINDLY: "writes it",
    IN_ONE: "locks it first, or changes it in one command",
    ONLY_READS: "reads it",
}


@dataclass(frozen=True, slots=True)
class Touch:
    """What an operation does to a table, or to a key. `lines`: of the user's code. `uses`: also by its other calls."""

    thing: str
    danger: int
    lines: tuple[str, ...]
    uses: tuple[Use, ...]

    def meets(self, other: Touch) -> bool:
        """Were both seen at the same row, one writing? Also True if nobody can tell which rows they were at."""
        found = [
            one.same_row(another)
            for one in self.uses
            for another in other.uses
            if {one.kind, another.kind} & {WRITES, AT_ONCE}
        ]
        return any(same is not False for same in found)


@dataclass(frozen=True)
class RecordedOperation:
    """One call of a user's function: the first that touches all that it ever touches. `before`: what its test had sent
    until then, with the fixtures that were set up by then. `calls`: what all its calls have sent."""

    name: str
    commands: tuple[RecordedCommand, ...]
    before: tuple[RecordedCommand, ...]
    calls: tuple[RecordedCommand, ...] = ()
    #: another module has a function of that name too
    ambiguous: bool = False

    @property
    def title(self) -> str:
        return self.name.replace(":", ".") if self.ambiguous else self.name.partition(":")[2]

    @property
    def call(self) -> str | None:
        return self.commands[0].call

    @property
    def why_not(self) -> str:
        """Why there is no `call`. "": there is one."""
        return "" if self.call is not None else f"{self.title}: {self.commands[0].why}"

    @property
    def test(self) -> str:
        return self.commands[0].test

    @cached_property
    def touches(self) -> dict[str, Touch]:
        own = [use for each in self.commands for use in uses(each)]
        every = [use for each in self.calls or self.commands for use in uses(each)]
        found: dict[str, Touch] = {}
        for thing in dict.fromkeys(use.thing for use in own):
            here = [use for use in own if use.thing == thing]
            lines = tuple(dict.fromkeys(use.line for use in here))
            found[thing] = Touch(thing, _danger(here), lines, tuple(u for u in every if u.thing == thing))
        return found


@dataclass(frozen=True)
class Pair:
    first: RecordedOperation
    second: RecordedOperation
    things: tuple[str, ...]
    danger: int
    #: the tests have called both for the same row or key, as far as one can tell
    meet: bool = True

    @property
    def title(self) -> str:
        return f"{self.first.title} + {self.second.title}"

    @property
    def why(self) -> str:
        """For the most dangerous thing: which operation does what to it."""
        thing = self.things[0]
        told = {each.title: each.touches[thing] for each in (self.first, self.second)}
        parts = [f"{name} {WHY[touch.danger]} ({', '.join(touch.lines)})" for name, touch in told.items()]
        return f"{thing}: {'; '.join(parts)}" if self.meet else f"{thing}, other rows: {'; '.join(parts)}"


def operations(commands: Sequence[RecordedCommand]) -> list[RecordedOperation]:
    """One call of each function: the one that sends the most, preferably one that can be written down."""
    found: dict[str, list[RecordedOperation]] = {}
    for number in dict.fromkeys(each.number for each in commands if each.number):
        own = tuple(each for each in commands if each.number == number)
        if any(_SCHEMA.match(each.text) for each in own if each.server != "redis"):
            continue  # it makes tables: a setup
        first = commands.index(own[0])
        before = _before(commands[:first], {own[0].test, *own[0].under})
        found.setdefault(own[0].operation, []).append(RecordedOperation(own[0].operation, own, before))
    chosen = []
    for calls in found.values():
        one = max(calls, key=lambda each: (each.call is not None, len(each.commands)))
        chosen.append(replace(one, calls=tuple(command for each in calls for command in each.commands)))
    titles = Counter(each.title for each in chosen)
    return [replace(each, ambiguous=titles[each.title] > 1) for each in chosen]


def _before(commands: Sequence[RecordedCommand], tests: Collection[str]) -> tuple[RecordedCommand, ...]:
    """What the test had sent, and its fixtures; and, if these made no table, the commands that had made them."""
    own = tuple(each for each in commands if each.test in tests)
    if any(_SCHEMA.match(each.text) for each in own):
        return own
    return (*(each for each in commands if each.test not in tests and _SCHEMA.match(each.text)), *own)


def pairs(found: Iterable[RecordedOperation]) -> list[Pair]:
    made = [
        pair for one, other in combinations_with_replacement(list(found), 2) for pair in _pair(one, other)
    ]
    return sorted(made, key=lambda pair: (not pair.meet, -pair.danger, pair.title))


def _pair(one: RecordedOperation, other: RecordedOperation) -> Iterator[Pair]:
    here, there = one.touches, other.touches
    common = [thing for thing in here if thing in there and max(here[thing].danger, there[thing].danger) > 0]
    dangers = {thing: here[thing].danger + there[thing].danger for thing in common}
    if common:
        meet = {thing: one is other or here[thing].meets(there[thing]) for thing in common}
        common.sort(key=lambda thing: (not meet[thing], -dangers[thing]))
        yield Pair(one, other, tuple(common), dangers[common[0]], meet[common[0]])


def _danger(own: Sequence[Use]) -> int:
    """How dangerous is what one call does to one thing?"""
    reads = [use for use in own if use.kind in (READS, TAKES_LOCK)]
    writes = [use for use in own if use.kind in (WRITES, AT_ONCE)]
    if not writes:
        return ONLY_READS
    if any(use.kind == TAKES_LOCK for use in reads):
        return IN_ONE
    if reads and own.index(reads[0]) < len(own) - 1 - own[::-1].index(writes[-1]):
        return BY_WHAT_IT_READ
    return IN_ONE if all(use.kind == AT_ONCE for use in writes) else BLINDLY
