"""The outcome of a schedule, in a form in which two can be compared: results, final rows, lasting keys.

What differs between any two runs does not count: fresh times of day and random keys (fresh.py), and the numbers that
sequences gave out. A new row is identified by its values and by the rows that it refers to, not by its number. A fresh
key is identified by where it stands: one that stands in two rows is not two keys.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any

from lost_update_lab.model.digest import digest
from lost_update_lab.snapshot.catalogue import Table
from lost_update_lab.snapshot.exact import number
from lost_update_lab.snapshot.tables import TableRows
from lost_update_lab.under_test.drawn import NOT_MEASURED, DrawnNumbers
from lost_update_lab.under_test.fresh import (
    KEY,
    NOW,
    RANDOM,
    fresh_keys,
    is_fresh,
    key_of,
    to_the_ms,
    without_clock,
)
from lost_update_lab.under_test.keys_left import KeysLeft

NEW = "‹new›"
_NUMBER = re.compile(r"\b\d{1,18}\b")
#: how far references are followed to tell new rows, and fresh keys, apart
ROUNDS = 3

Row = Mapping[str, Any]
Path = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """`rows`: for each table that has changed since the beginning, its rows as sorted texts; `timed`: the same with
    their fresh times. `numbers`: those that sequences gave to new rows, each with where it stands; `fresh`: the fresh
    keys in rows, likewise."""

    rows: Mapping[str, tuple[str, ...]]
    timed: Mapping[str, tuple[str, ...]]
    numbers: Mapping[int, str] = field(default_factory=dict)
    fresh: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """`answers`: for each worker, (returned or raised, what). `left`: in the database; `keys`: in Redis. `known`: the
    constants (fresh.py)."""

    answers: tuple[tuple[str, Any], ...]
    left: LeftBehind
    keys: KeysLeft
    known: Collection[str] = ()

    def rows_beside(self, other: Outcome) -> Mapping[str, tuple[str, ...]]:
        """The rows by which the two are compared. As long as no time passes, all clocks show the same, so a time is
        another one only if it was computed in another way."""
        both = self.keys.undisturbed and other.keys.undisturbed
        return self.left.timed if both else self.left.rows

    def left_the_same(self, other: Outcome) -> bool:
        return self.rows_beside(other) == other.rows_beside(self) and not self.keys.unlike(other.keys)

    def answered_the_same(
        self,
        other: Outcome,
        workers: Collection[int],
        kinds: Sequence[Hashable],
        unordered: Collection[int] = (),
    ) -> bool:
        """`kinds`: for each worker, what it did. Those that did the same answer with the same things in the same
        places. At each place the values are the same, or all of them are numbers or keys that mean nothing, each of
        which stands for another one there. `unordered`: the workers of whose lists the order means nothing."""
        places: defaultdict[Path, list[tuple[Any, Any]]] = defaultdict(list)
        for index in workers:
            one: Any = self.answers[index]
            two: Any = other.answers[index]
            if index in unordered:
                one, two = self._sorted(one), other._sorted(two)
            for path, *pair in _leaves(one, two, (kinds[index],)):
                places[path].append((pair[0], pair[1]))
        renamed = _Renaming(self, other)
        unlike = [
            pairs
            for pairs in places.values()
            if any(isinstance(one, _Key) or one != two for one, two in pairs)
        ]
        return all(renamed.stands_for(one, two) for pairs in unlike for one, two in pairs)

    def _sorted(self, answer: Any) -> Any:
        """The same with its lists in an order in which what means nothing does not count."""
        if isinstance(answer, dict):
            return {name: self._sorted(value) for name, value in answer.items()}
        if isinstance(answer, tuple):
            return tuple(map(self._sorted, answer))
        return sorted(map(self._sorted, answer), key=self._blank) if isinstance(answer, list) else answer

    def _blank(self, value: Any) -> str:
        text = KEY.sub(RANDOM, json.dumps(value, sort_keys=True, default=str))
        return _NUMBER.sub(lambda number: NEW if int(number[0]) in self.left.numbers else number[0], text)


class _Key(str):
    """A random key."""


def _leaves(one: Any, other: Any, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    """The values of two answers, in pairs, with their places."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for key in one:
            yield from _leaves(one[key], other[key], (*path, key))
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        for place, pair in enumerate(zip(one, other, strict=True)):
            yield from _leaves(*pair, (*path, place))
    elif isinstance(one, str) and isinstance(other, str):
        keys = KEY.findall(one), KEY.findall(other)
        if len(keys[0]) != len(keys[1]) or KEY.sub(RANDOM, one) != KEY.sub(RANDOM, other):
            yield path, one, other
            return
        for place, (key, another) in enumerate(zip(*keys, strict=True)):
            yield (*path, place), _Key(key), _Key(another)
    else:
        yield path, one, other


class _Renaming:
    """Which number, or fresh key, of one outcome stands for which one of the other."""

    def __init__(self, one: Outcome, other: Outcome) -> None:
        self.one, self.other = one, other
        self._there: dict[Any, Any] = {}
        self._here: dict[Any, Any] = {}

    def stands_for(self, one: Any, other: Any) -> bool:
        here, there, known = self.one.left, self.other.left, self.one.known
        if isinstance(one, _Key) and isinstance(other, _Key):
            one, other = key_of(one), key_of(other)
            if one in known or other in known:
                return bool(one == other)
            where = here.fresh.get(one), there.fresh.get(other)
        elif type(one) is type(other) is int and one in here.numbers and other in there.numbers:
            where = here.numbers[one], there.numbers[other]
        else:
            numbers = all(type(each) in (int, float) and is_fresh(each, known) for each in (one, other))
            return bool(one == other) or numbers
        same: bool = self._there.setdefault(one, other) == other and self._here.setdefault(other, one) == one
        return same and where[0] == where[1]


def canonical(
    same: TableRows,
    changed: TableRows,
    opening: TableRows,
    left_out: Collection[tuple[str, str]],
    known: Collection[str] = (),
    drawn: DrawnNumbers = NOT_MEASURED,
) -> LeftBehind:
    """Of the tables that have changed: the rows that are the `same` as in the `opening` state, and those that are
    `changed`. `known`: as in Outcome. `drawn`: which numbers sequences gave out."""
    return _Canonical(same, changed, opening, left_out, known, drawn).left()


class _Canonical:
    """`_colours`: what is known of each new row, by its table and key; `_fresh`: … of each fresh key. Rows that are the
    `same` hold nothing fresh, and refer to nothing new (50,000 rows: a third of the time)."""

    def __init__(
        self,
        same: TableRows,
        changed: TableRows,
        opening: TableRows,
        left_out: Collection[tuple[str, str]],
        known: Collection[str],
        drawn: DrawnNumbers,
    ) -> None:
        self.left_out, self.known, self.drawn, self.same = left_out, known, drawn, same
        self.old = {t: {name: {row[name] for row in opening[t]} for name in t.meaningless} for t in changed}
        self.rows = {table: [self._marked(table, row) for row in of] for table, of in changed.items()}
        self._colours: dict[tuple[int, Hashable], str] = {}
        self._fresh: dict[str, str] = {}
        self.shows_times = False

    def _marked(self, table: Table, row: Row) -> Row:
        marked, old = self.drawn.marked, self.old[table]
        return {name: marked((table.title, name), value, old.get(name, ())) for name, value in row.items()}

    def left(self) -> LeftBehind:
        for _ in range(ROUNDS):
            texts = self._texts()
            referring = self._referring(texts)
            self._colours = {
                (table.oid, row[table.surrogate]): _colour(
                    repr((text, sorted(referring[table.oid, row[table.surrogate]])))
                )
                for table, row, text in texts
                if table.surrogate and self._is_new(table, table.surrogate, row)
            }
            self._fresh = _where(
                (key_of(key), table.title, name, text)
                for table, row, text in texts
                for name, value in row.items()
                if (table.title, name) not in self.left_out
                for key in fresh_keys(json.dumps(value, ensure_ascii=False, default=str), self.known)
            )
        texts = self._texts()
        same = {table: list(map(partial(self._unchanged, table), of)) for table, of in self.same.items()}
        found = _by_table(same, texts)
        timed = found
        if any(NOW in text for *_, text in texts):
            self.shows_times = True
            timed = _by_table(same, self._texts())
        numbers = _where(
            (row[name], table.title, name, text)
            for table, row, text in texts
            for name in table.meaningless
            if isinstance(row[name], int) and self._is_new(table, name, row)
        )
        return LeftBehind(found, timed, numbers, self._fresh)

    def _referring(self, texts: list[tuple[Table, Row, str]]) -> Mapping[Any, list[tuple[str, str, str]]]:
        """For each row, by its table and key, those that refer to it. Two new rows with the same values are told apart
        by them: both items in one order are not one item in each."""
        found: defaultdict[Any, list[tuple[str, str, str]]] = defaultdict(list)
        for table, row, text in texts:
            for name, oid in table.refers:
                found[oid, row[name]].append((table.title, name, text))
        return found

    def _is_new(self, table: Table, name: str, row: Row) -> bool:
        computed = (table.title, name) in self.drawn.values
        return not computed and row[name] not in self.old[table].get(name, (row[name],))

    def _texts(self) -> list[tuple[Table, Row, str]]:
        return [(table, row, self._text(table, row)) for table, rows in self.rows.items() for row in rows]

    def _text(self, table: Table, row: Row) -> str:
        refers, told = dict(table.refers), {}
        for name, value in row.items():
            if name in refers and (refers[name], value) in self._colours:  # whatever the server has drawn
                told[name] = f"{NEW} {self._colours[refers[name], value]}"
            elif (table.title, name) in self.left_out:
                continue
            else:
                told[name] = NEW if self._is_new(table, name, row) else self._told(value)
        return json.dumps(told, sort_keys=True, ensure_ascii=False)

    def _unchanged(self, table: Table, row: Row) -> str:
        told = {name: value for name, value in row.items() if (table.title, name) not in self.left_out}
        return json.dumps(told, sort_keys=True, ensure_ascii=False, default=number)

    def _told(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._told(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._told(each) for each in value]
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            told = number(value) if isinstance(value, Decimal) else value
            if not is_fresh(float(value), self.known):
                return told
            return to_the_ms(float(value)) if self.shows_times else NOW
        if not isinstance(value, str):
            return value
        for key in {*fresh_keys(value, self.known)}:
            value = value.replace(key, f"{RANDOM} {self._fresh.get(key_of(key), '')}".rstrip())
        return to_the_ms(value) if self.shows_times else without_clock(value, self.known)


def _by_table(
    same: Mapping[Table, list[str]], texts: Sequence[tuple[Table, Row, str]]
) -> dict[str, tuple[str, ...]]:
    """Rows that have not changed, and those that have, as sorted texts."""
    return {
        table.title: tuple(sorted([*of, *(text for t, _, text in texts if t is table)]))
        for table, of in same.items()
    }


def key_in(table: Table, row: Row) -> str:
    """The row's key, as a text."""
    return repr([row[column] for column in table.key])


def _colour(text: str) -> str:
    return digest(text.encode()).hex()


def _where(found: Iterator[tuple[Any, str, str, str]]) -> dict[Any, str]:
    """What stands where: each thing with its tables, columns and rows, as one text."""
    places: defaultdict[Any, list[tuple[str, str, str]]] = defaultdict(list)
    for thing, *place in found:
        places[thing].append((place[0], place[1], place[2]))
    return {thing: _colour(repr(sorted(of))) for thing, of in places.items()}
