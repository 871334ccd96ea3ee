"""What Redis holds at the end of a schedule, in a form in which two outcomes can be compared.

A number that a sequence of the database gave out means nothing, wherever it stands: in a queue, in the name of a key.

    here     RPUSH queue 2, RPUSH queue 1      orders: 1 is Bob's, 2 is Ann's        the queue: Ann's order, then Bob's
    there    RPUSH queue 1, RPUSH queue 2      orders: 1 is Ann's, 2 is Bob's        the same
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lost_update_lab.under_test.drawn import DrawnNumbers, Place
from lost_update_lab.under_test.fresh import MARK, RANDOM, comparable, key_of, without_clock

#: places of an outcome: the values of keys, and those of keys whose lease will end
LASTING_KEY, LEASED_KEY = "key", "key with a lease"
_NAME = "name"
#: how much of a value is shown
_SHOWN = 100


@dataclass(frozen=True, slots=True)
class KeysLeft:
    """Key → its value as a text without fresh times. `lasting`: those that stay; `leased`: those whose lease will end.
    How long it lasts does not count. `moving`: of these, those whose values are others in each run. `undisturbed`: no
    time has passed, and no fault has struck, so no lease was over, and none was left behind by a crash."""

    lasting: Mapping[str, str] = field(default_factory=dict)
    leased: Mapping[str, str] = field(default_factory=dict)
    moving: Collection[str] = ()
    undisturbed: bool = False

    def unlike(self, other: KeysLeft) -> list[str]:
        """The keys by which two outcomes differ. Of a lease that may be over in one of them, the value counts where
        both have it."""
        here, there = self.lasting, other.lasting
        if self.undisturbed and other.undisturbed:
            here, there = {**here, **self.leased}, {**there, **other.leased}
        found = {key for key in {*here, *there} if here.get(key) != there.get(key)}
        both = (self.leased.keys() & other.leased.keys()) - {*self.moving, *other.moving}
        return sorted(found | {key for key in both if self.leased[key] != other.leased[key]})

    def told(self, other: KeysLeft, key: str) -> str:
        """How two outcomes differ by this key."""
        here, there = ({**each.lasting, **each.leased}.get(key) for each in (self, other))
        if here is None or there is None:
            return "here only" if there is None else "there only"
        return f"here {here:.{_SHOWN}}; there {there:.{_SHOWN}}"


def places(found: Mapping[str, str], kind: str) -> Iterator[tuple[Place, Any]]:
    """The names and values of these keys, each with its place. Keys that differ by a number stand at one place."""
    for key, value in found.items():
        yield (kind, shape(key), _NAME), key
        yield (kind, shape(key)), value


def shape(key: str) -> str:
    """The key without its numbers."""
    return re.sub(r"\d+", "#", key)


def keys_left(
    lasting: Mapping[str, str],
    leased: Mapping[str, str],
    known: Collection[str],
    moving: Collection[str],
    drawn: DrawnNumbers,
    fresh: Mapping[str, str],
) -> KeysLeft:
    """`known`: the constants. `moving`: as in KeysLeft, by their shapes. `drawn`: which numbers sequences gave out;
    `fresh`: where those stand in the tables."""

    def told(kind: str, key: str, value: str) -> tuple[str, str]:
        place = kind, shape(key)
        name, text = (
            MARK.sub(lambda mark: f"{RANDOM} {fresh.get(key_of(mark[0]), '')}".rstrip(), each)
            for each in (drawn.marked((*place, _NAME), key), drawn.marked(place, value))
        )
        return name, without_clock(comparable(text, known) if kind == LEASED_KEY else text, known)

    kept = dict(told(LASTING_KEY, *each) for each in lasting.items())
    ending = dict(told(LEASED_KEY, *each) for each in leased.items())
    names = {told(LEASED_KEY, key, "")[0] for key in leased if shape(key) in moving}
    return KeysLeft(kept, ending, names)
