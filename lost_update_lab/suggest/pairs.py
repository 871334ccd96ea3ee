"""Pairs of operations that touch the same rows or keys, where one of them writes; most dangerous first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

from lost_update_lab.suggest.recording import RecordedCommand

_TABLE = re.compile(r'\b(?:FROM|JOIN|UPDATE|INTO|ONLY)\s+((?:["`]?\w+["`]?\.)?["`]?\w+["`]?)', re.IGNORECASE)
_WRITES = re.compile(r"\s*(UPDATE|INSERT|DELETE|MERGE|REPLACE)\b", re.IGNORECASE)
_LOCKS = re.compile(
    r"\bFOR\s+(?:NO\s+KEY\s+)?(?:UPDATE|SHARE|KEY\s+SHARE)\b|\bpg_(?:try_)?advisory|\bGET_LOCK\b"
    r"|\bLOCK\s+IN\s+SHARE\s+MODE\b",
    re.IGNORECASE,
)
_SCHEMA = re.compile(r"\s*(?:CREATE|ALTER|DROP|TRUNCATE|GRANT)\b", re.IGNORECASE)
_RELATIVE = re.compile(
    r'\bSET\b.*?["`]?(\w+)["`]?\s*=\s*\(?\s*(?:["`]?\w+["`]?\.)?["`]?\1\b', re.IGNORECASE | re.DOTALL
)
_KEY_READS = frozenset(
    {"GET", "MGET", "HGET", "HGETALL", "HMGET", "EXISTS", "LLEN", "SCARD", "LRANGE", "TTL"}
)
#: commands that decide by themselves
_KEY_AT_ONCE = frozenset(
    {"INCR", "INCRBY", "DECR", "DECRBY", "HINCRBY", "SETNX", "EVAL", "EVALSHA", "SADD", "LPUSH"}
)

#: how dangerous an operation is for a thing that it touches
BY_WHAT_IT_READ, BLINDLY, AT_ONCE, ONLY_READS = 4, 3, 1, 0
WHY = {
    BY_WHAT_IT_READ: "reads it without a lock, and then writes it",
    BLINDLY: "writes it",
    AT_ONCE: "locks it first, or changes it in one command",
    ONLY_READS: "reads it",
}


@dataclass(frozen=True, slots=True)
class Touch:
    """What an operation does to a table, or to a key. `lines`: of the user's code."""

    thing: str
    danger: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class RecordedOperation:
    """One call of a user's function: the first that touches all that it ever touches. `before`: what its test had sent
    until then."""

    name: str
    commands: tuple[RecordedCommand, ...]
    before: tuple[RecordedCommand, ...]

    @property
    def title(self) -> str:
        return self.name.partition(":")[2]

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

    @property
    def touches(self) -> dict[str, Touch]:
        found: dict[str, Touch] = {}
        for thing in dict.fromkeys(thing for each in self.commands for thing in _things(each)):
            own = [each for each in self.commands if thing in _things(each)]
            found[thing] = Touch(thing, _danger(own), tuple(dict.fromkeys(each.line for each in own)))
        return found


@dataclass(frozen=True)
class Pair:
    first: RecordedOperation
    second: RecordedOperation
    things: tuple[str, ...]
    danger: int

    @property
    def title(self) -> str:
        return f"{self.first.title} + {self.second.title}"

    @property
    def why(self) -> str:
        """For the most dangerous thing: which operation does what to it."""
        thing = self.things[0]
        told = {each.title: each.touches[thing] for each in (self.first, self.second)}
        parts = [f"{name} {WHY[touch.danger]} ({', '.join(touch.lines)})" for name, touch in told.items()]
        return f"{thing}: {'; '.join(parts)}"


def operations(commands: Sequence[RecordedCommand]) -> list[RecordedOperation]:
    """One call of each function: the one that sends the most, preferably one that can be written down."""
    found: dict[str, list[RecordedOperation]] = {}
    for number in dict.fromkeys(each.number for each in commands if each.number):
        own = tuple(each for each in commands if each.number == number)
        if any(_SCHEMA.match(each.text) for each in own if each.server != "redis"):
            continue  # it makes tables: a setup
        first = commands.index(own[0])
        before = _before(commands[:first], own[0].test)
        found.setdefault(own[0].operation, []).append(RecordedOperation(own[0].operation, own, before))
    return [
        max(calls, key=lambda each: (each.call is not None, len(each.commands))) for calls in found.values()
    ]


def _before(commands: Sequence[RecordedCommand], test: str) -> tuple[RecordedCommand, ...]:
    """What the test had sent; and, if it made no table itself, the commands that had made them."""
    own = tuple(each for each in commands if each.test == test)
    if any(_SCHEMA.match(each.text) for each in own):
        return own
    return (*(each for each in commands if each.test != test and _SCHEMA.match(each.text)), *own)


def pairs(found: Iterable[RecordedOperation]) -> list[Pair]:
    made = [
        pair for one, other in combinations_with_replacement(list(found), 2) for pair in _pair(one, other)
    ]
    return sorted(made, key=lambda pair: (-pair.danger, pair.title))


def _pair(one: RecordedOperation, other: RecordedOperation) -> Iterator[Pair]:
    here, there = one.touches, other.touches
    common = [thing for thing in here if thing in there and max(here[thing].danger, there[thing].danger) > 0]
    dangers = {thing: here[thing].danger + there[thing].danger for thing in common}
    if common:
        common.sort(key=lambda thing: -dangers[thing])
        yield Pair(one, other, tuple(common), max(dangers.values()))


def _things(command: RecordedCommand) -> tuple[str, ...]:
    if command.server == "redis":
        words = command.text.split()
        return (f"key {words[1]}",) if len(words) > 1 else ()
    names = (re.sub('["`]', "", name) for name in _TABLE.findall(command.text))
    return tuple(dict.fromkeys(name for name in names if not name.startswith(("pg_", "information_schema"))))


def _danger(commands: Sequence[RecordedCommand]) -> int:
    reads = [each for each in commands if not _is_write(each)]
    writes = [each for each in commands if _is_write(each)]
    if not writes:
        return ONLY_READS
    if any(_is_at_once(each) for each in reads):
        return AT_ONCE
    if reads and commands.index(reads[0]) < commands.index(writes[-1]):
        return BY_WHAT_IT_READ
    alone = all(_is_at_once(each) or each.text.upper().startswith("INSERT") for each in writes)
    return AT_ONCE if alone else BLINDLY


def _is_write(command: RecordedCommand) -> bool:
    if command.server == "redis":
        return command.text.split()[0].upper() not in _KEY_READS
    return bool(_WRITES.match(command.text))


def _is_at_once(command: RecordedCommand) -> bool:
    if command.server == "redis":
        words = command.text.upper().split()
        return words[0] in _KEY_AT_ONCE or "NX" in words[3:]
    return bool(_LOCKS.search(command.text) or _RELATIVE.search(command.text))
