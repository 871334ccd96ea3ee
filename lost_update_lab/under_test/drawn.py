"""Numbers that sequences give out: which of the numbers in an outcome are such ones?

What number an order gets means nothing: in another order of the same operations, or after a draw in vain, it is another
one. No form tells it: 2 may be the number of an order, or an amount. So the serial orders are run once more with each
sequence further ahead, by another distance (serial.py). A number that moves by the distance of a sequence was drawn
from it, wherever it stands: in a column without a foreign key, in JSON, in the text `R-00002`, in an answer. One that
stays is a value, also in a column whose default draws: the operation computed it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lost_update_lab.under_test.fresh import NUMBERED, TIME, UUID

#: where in an outcome: a table and a column, or who answered; then the way into the value. All items of a list are one
Place = tuple[Hashable, ...]
#: what a schedule came to, as it is: a row by its table's name, or an answer; its columns or parts; and the value
Values = Iterable[tuple[Place, Any]]
_TOKEN = re.compile(f"{UUID.pattern}|{TIME.pattern}|\\d+", re.IGNORECASE)
_ITEM = "[]"


@dataclass(frozen=True)
class DrawnNumbers:
    """`places`: where numbers of a sequence stand, and of which one; `last`: the last number that each had given out
    before. `values`: columns that draw by default, in which the operations put numbers of their own."""

    places: Mapping[Place, int] = field(default_factory=dict)
    last: Mapping[int, int] = field(default_factory=dict)
    values: Collection[Place] = ()

    def marked(self, place: Place, value: Any, old: Collection[Any] = ()) -> Any:
        """The value with a mark in place of each drawn number. `old`: values that were there at the beginning."""
        if not self.places or (isinstance(value, Hashable) and value in old):
            return value
        if isinstance(value, dict):
            return {key: self.marked((*place, key), each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.marked((*place, _ITEM), each) for each in value]
        if isinstance(value, int) and not isinstance(value, bool):
            return self._mark(place, value, value)
        if isinstance(value, str):
            return self._in_text(place, value)
        return value

    def _in_text(self, place: Place, text: str) -> str:
        at, found = -1, list[str]()
        end = 0
        for token in _TOKEN.finditer(text):
            if token[0].isdigit():
                at += 1
                found += [text[end : token.start()], str(self._mark((*place, at), int(token[0]), token[0]))]
                end = token.end()
        return "".join((*found, text[end:]))

    def _mark(self, place: Place, number: int, otherwise: Any) -> Any:
        sequence = self.places.get(place)
        if sequence is None or number <= self.last[sequence]:
            return otherwise
        return NUMBERED.format(sequence, number)


NOT_MEASURED = DrawnNumbers()


def measured(
    pairs: Iterable[tuple[Values, Values]],
    distances: Mapping[int, int],
    last: Mapping[int, int],
    drawing: Collection[Place],
) -> DrawnNumbers:
    """`pairs`: what serial orders came to, and came to when each sequence was this far ahead (`distances`). `drawing`:
    the columns that draw by default."""
    places: dict[Place, int] = {}
    stay: set[Place] = set()
    of = {distance: sequence for sequence, distance in distances.items()}
    for once, again in pairs:
        one, two = _numbers(once), _numbers(again)
        for place, numbers in one.items():
            moved, there = numbers - two.get(place, set()), two.get(place, set()) - numbers
            found = {of[to - number] for number in moved for to in there if to - number in of}
            if found:
                places[place] = min(found)
            if place in drawing and not moved:
                stay.add(place)
    return DrawnNumbers(places, last, stay - places.keys())


def _numbers(values: Values) -> Mapping[Place, set[int]]:
    found: defaultdict[Place, set[int]] = defaultdict(set)
    for place, value in values:
        for at, number in _inside(place, value):
            found[at].add(number)
    return found


def _inside(place: Place, value: Any) -> Iterator[tuple[Place, int]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _inside((*place, key), each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _inside((*place, _ITEM), each)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield place, value
    elif isinstance(value, str):
        tokens = (token[0] for token in _TOKEN.finditer(value) if token[0].isdigit())
        yield from (((*place, at), int(token)) for at, token in enumerate(tokens))
