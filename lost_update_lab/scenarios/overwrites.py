"""Which worker overwrote which: of two that wrote the same rows, the later one had read before the earlier one wrote.

This is found in the steps of one schedule by the rows' own versions. So a write is seen even if it changes no value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lost_update_lab.servers.compound import RELATIVE

#: the most sentences for one schedule
MOST = 2
T = TypeVar("T")
#: a statement that writes, and the table that it writes
_WRITES = re.compile(
    r"\s*(?:UPDATE|(?:INSERT|REPLACE|MERGE)(?:\s+IGNORE)?\s+INTO|DELETE\s+FROM)\s+(?:ONLY\s+)?"
    r"(?:[\"`]?\w+[\"`]?\.)?[\"`]?(\w+)",
    re.IGNORECASE,
)
_READS = re.compile(r"\s*(?:SELECT|WITH)\b", re.IGNORECASE)
_KEY_READS = frozenset(
    {"GET", "MGET", "HGET", "HGETALL", "HMGET", "EXISTS", "LRANGE", "LLEN", "SCARD", "ZSCORE"}
)


@dataclass(frozen=True, slots=True)
class Did:
    """One step. `written`: the rows and keys that are new, gone or changed from then on, as everyone can see."""

    who: str
    command: str
    reply: str
    line: str
    written: frozenset[str]

    @property
    def verb(self) -> str:
        return self.command.split(maxsplit=1)[0].upper() if self.command.strip() else "command"

    @property
    def place(self) -> str:
        return f"{self.verb}{f' at {self.line}' if self.line else ''}"

    def writes(self, thing: str) -> bool:
        """Is this the statement that writes this row or key, or one of its table?"""
        if thing.startswith("key "):
            return thing in self.written
        found = _WRITES.match(self.command)
        return bool(found and found[1].lower() == _table(thing).rpartition(".")[2].lower())

    def reads(self, thing: str) -> bool:
        if thing.startswith("key "):
            words = self.command.split()
            return bool(words) and words[0].upper() in _KEY_READS and thing.removeprefix("key ") in words[1:]
        return bool(_READS.match(self.command)) and _names(self.command, thing)


def _may_concern(command: str, thing: str) -> bool:
    """Does it look for this row by its key, or for no row in particular?"""
    key, (_, where, condition) = thing.partition("[")[2].removesuffix("]"), _in_parts(command)
    return not (key and where) or all(_has(condition, each) for each in key.split(", "))


def _in_parts(command: str) -> tuple[str, str, str]:
    """What comes before its WHERE, that word, and the condition."""
    found = list(re.finditer(r"\bWHERE\b", command, re.IGNORECASE))
    return (
        (command[: found[-1].start()], found[-1][0], command[found[-1].end() :])
        if found
        else (command, "", "")
    )


def _has(text: str, word: str) -> bool:
    return bool(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text))


def _table(thing: str) -> str:
    return thing if thing.startswith("key ") else thing.partition("[")[0]


def _names(command: str, thing: str) -> bool:
    return bool(re.search(rf"(?<![\w]){re.escape(_table(thing).rpartition('.')[2])}(?!\w)", command))


def overwrites(steps: Sequence[Did]) -> tuple[str, ...]:
    """The sentences. Empty if every worker that wrote had read what was there."""
    found: dict[tuple[str, str], str] = {}
    for how in (_same_row, _same_table):
        if not found:
            for who, sentence in how(steps):
                found.setdefault(who, sentence)
    return tuple(found.values())[:MOST]


def _same_row(steps: Sequence[Did]) -> Iterator[tuple[tuple[str, str], str]]:
    for later, one in enumerate(steps):
        for earlier in range(later - 1, -1, -1):
            other = steps[earlier]
            for row in sorted(one.written & other.written if one.who != other.who else ()):
                statement = _statement(steps, later, row)
                if (read := _last_read(steps, statement, one.who, row)) is not None and read < earlier:
                    yield (one.who, other.who), _told(steps, row, read, earlier, statement)


def _told(steps: Sequence[Did], row: str, read: int, earlier: int, statement: int) -> str:
    mine, theirs = steps[statement], steps[_statement(steps, earlier, row)]
    seen = ": ".join(filter(None, (steps[read].line, steps[read].reply))) or "before"
    if _relative(mine.command):
        return (
            f"{mine.who}'s {mine.place} stands on what {mine.who} had read ({seen}), and not on what {theirs.who}'s "
            f"{theirs.place} wrote meanwhile: {row}"
        )
    return (
        f"{mine.who}'s {mine.place} overwrote what {theirs.who}'s {theirs.place} wrote: {row}. {mine.who} had read it "
        f"before ({seen})"
    )


def _relative(command: str) -> bool:
    """Is it like `SET balance = balance - 40`, which uses the present value?"""
    return bool(RELATIVE.search(command))


def _same_table(steps: Sequence[Did]) -> Iterator[tuple[tuple[str, str], str]]:
    """What one worker read is no longer true, because another has written something else: a skew, a phantom."""
    for later, one in enumerate(steps):
        for earlier, other in enumerate(steps):
            tables = {_table(row) for row in other.written} if one.who != other.who and one.written else ()
            for table in sorted(tables):
                statement = _statement(steps, later, next(iter(sorted(one.written))))
                read = _last_read(steps, statement, one.who, table)
                if read is not None and read < earlier and _were_under_way(steps, later, earlier):
                    theirs = steps[_statement(steps, earlier, table)]
                    reply = f" ({steps[read].reply})" if steps[read].reply else ""
                    yield (
                        (one.who, other.who),
                        f"{one.who} read {table} at {steps[read].line or 'first'}{reply}, before {theirs.who}'s "
                        f"{theirs.place}, and wrote {_listed(one.written)} by that",
                    )


def _were_under_way(steps: Sequence[Did], later: int, earlier: int) -> bool:
    """The one who writes at `later` has read what is no longer true from `earlier` on. Was that so before it wrote, or
    had the other one read by then, too? Else one came after the other."""
    if earlier < later:
        return True
    written = next(iter(sorted(steps[later].written)))
    statement = _statement(steps, earlier, next(iter(sorted(steps[earlier].written))))
    read = _last_read(steps, statement, steps[earlier].who, _table(written))
    return read is not None and read < later


def _listed(rows: Collection[str]) -> str:
    return ", ".join(sorted(rows)[:3]) + ", …" * (len(rows) > 3)


def _statement(steps: Sequence[Did], visible: int, row: str) -> int:
    """The statement whose work became visible at this step: a commit shows what was written before."""
    who, found = steps[visible].who, list[int]()
    for number in range(visible, -1, -1):
        step = steps[number]
        if step.who == who and step.writes(row):
            found.append(number)
        if step.who == who and number != visible and step.written:
            break
    return _one_of(steps, found, row, visible)


def _one_of(steps: Sequence[Did], found: Sequence[int], row: str, default: T) -> int | T:
    """The first of these steps that may concern the row, or else the first."""
    return next(
        (each for each in found if _may_concern(steps[each].command, row)), next(iter(found), default)
    )


def _last_read(steps: Sequence[Did], before: int, who: str, row: str) -> int | None:
    reads = [
        number
        for number in range(before - 1, -1, -1)
        if steps[number].who == who and steps[number].reads(row)
    ]
    return _one_of(steps, reads, row, None)
