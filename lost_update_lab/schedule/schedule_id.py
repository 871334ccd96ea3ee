"""A schedule as a short text: the decisions that did not take the first transition, and the gaps between."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

from lost_update_lab.model.transitions import Kind, Transition
from lost_update_lab.schedule import virtual_clock
from lost_update_lab.schedule.world import Chooser, World

_LETTERS = string.ascii_letters
_PART = re.compile(r"(\d*)([a-zA-Z])")
#: how many digits a number of first transitions may have
MOST_DIGITS = 6


def encode(choices: Sequence[int]) -> str:
    """`12a3c`: twelve first transitions, then the second (a), three first ones, then the fourth (c)."""
    text, zeros = [], 0
    for choice in choices:
        if choice == 0:
            zeros += 1
            continue
        if choice > len(_LETTERS):
            raise ValueError(f"a decision with more than {len(_LETTERS)} transitions has no short form")
        text.append((str(zeros) if zeros else "") + _LETTERS[choice - 1])
        zeros = 0
    return "".join(text)


def decode(text: str) -> list[int]:
    """The inverse of `encode`, without the first transitions at the end. Raises ValueError."""
    if _PART.sub("", text):
        raise ValueError(f"{text!r} is no schedule: numbers and letters in turn, as 12a3c")
    choices: list[int] = []
    for zeros, letter in _PART.findall(text):
        if len(zeros) > MOST_DIGITS:
            raise ValueError(f"{text!r} is no schedule: none is that long")
        choices += [0] * int(zeros or 0) + [_LETTERS.index(letter) + 1]
    return choices


class Diverged(Exception):
    """A replayed schedule came to a decision that does not have this transition."""


def exactly(choices: Sequence[int]) -> Chooser:
    """A chooser that follows these decisions, and after them always takes the first transition."""

    def choose(run: World, transitions: Sequence[Transition]) -> int:
        taken = run.decisions - 1
        choice = choices[taken] if taken < len(choices) else _quietest(run, transitions)
        if choice >= len(transitions):
            raise Diverged(
                f"decision {run.decisions}: transition {choice} of {[str(o) for o in transitions]}"
            )
        return choice

    return choose


def roughly(wanted: Sequence[Transition]) -> Chooser:
    """A chooser that takes these transitions in their order, as far as they come up, and otherwise the first one."""
    rest: list[Transition] = []

    def choose(run: World, transitions: Sequence[Transition]) -> int:
        if run.decisions == 1:
            rest[:] = wanted
        if len(transitions) == 1:
            if rest and rest[0] == transitions[0]:
                rest.pop(0)
            return _quietest(run, transitions)
        for place, transition in enumerate(rest):
            if transition in transitions:
                del rest[: place + 1]
                return transitions.index(transition)
        return _quietest(run, transitions)

    return choose


def in_time(wanted: Sequence[Transition], times: Sequence[int]) -> Chooser:
    """A chooser that takes these transitions, each at its time (µs). What comes before is done as it comes: polls in
    vain, through which a search may sleep that knows them."""
    rest: list[tuple[Transition, int]] = []

    def choose(run: World, transitions: Sequence[Transition]) -> int:
        if run.decisions == 1:
            rest[:] = zip(wanted, times, strict=True)
        if rest and rest[0][1] > run.now:
            return _early(run, transitions)
        for place, (transition, at) in enumerate(rest):
            if transition in transitions and at <= run.now:
                del rest[: place + 1]
                return transitions.index(transition)
        return _quietest(run, transitions)

    return choose


def _early(run: World, transitions: Sequence[Transition]) -> int:
    """A poll in vain, or else time passes."""
    polls = (
        place
        for place, each in enumerate(transitions)
        if each.kind is Kind.STEP and run.task(each.who).vain_since is not None
    )
    passes = (place for place, each in enumerate(transitions) if each.kind is Kind.TICK)
    return next(polls, next(passes, 0))


def _quietest(run: World, transitions: Sequence[Transition]) -> int:
    """Go on quietly. When only polls in vain are left, end the pause, or the run."""
    if virtual_clock.only_polls(run):
        for place, transition in enumerate(transitions):
            if transition.kind is Kind.RESUME:
                return place
        run.stuck = True
    return 0
