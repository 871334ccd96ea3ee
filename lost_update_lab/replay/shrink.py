"""Make a counterexample smaller: fewer changes of worker, then fewer steps; the same faults.

The search has covered every schedule with fewer faults before one with more is shown for that word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from math import inf
from time import perf_counter as _now

from lost_update_lab.harness import Harness
from lost_update_lab.model.errors import Unknown
from lost_update_lab.model.transitions import STEPS, Kind, Transition
from lost_update_lab.replay.schedule_id import Diverged, NotSmaller, exactly, play, play_in_memory, roughly
from lost_update_lab.runs.found import Found

Block = list[Transition]
MOST_TRIES = 150
#: … of which so many are not known, and have to be executed
MOST_EXECUTED = 40
TIMES = 10
#: decisions after the last choice that may still be moved
QUIET = 8


def shrink(harness: Harness, watched: dict[bytes, int], found: Found, until: float = inf) -> Found:
    """Return a schedule of the same word that is no larger; each was really executed.

    Blocks of one worker's steps are moved next to each other, moved away, or left out, as long as that helps, and
    not beyond `until` on the performance counter.
    """
    best, tries, better, before = found, 0, True, harness.runs
    while better:
        better = False
        for candidate in _candidates(best):
            if tries >= MOST_TRIES or harness.runs - before >= MOST_EXECUTED or _now() > until:
                break
            tries += 1
            smaller = _tried(harness, watched, candidate, best)
            if smaller and smaller.same_as(found) and smaller.size < best.size:
                best, better = smaller, True
                break
    return best


def again(harness: Harness, watched: dict[bytes, int], found: Found) -> Found | None:
    """Return the schedule as it comes out when no more is known of the waiters than `watched`, if it does."""
    same, _ = play(harness, watched, roughly(found.transitions))
    return same if same.same_as(found) else None


def _tried(
    harness: Harness, watched: dict[bytes, int], candidate: Sequence[Transition], best: Found
) -> Found | None:
    """By what is known, if that is enough; what comes out at last is confirmed by real code. None: not smaller."""
    with suppress(Unknown):
        try:
            return play_in_memory(harness, watched, roughly(candidate), best.size)
        except NotSmaller:
            return None
    if harness.recording and not harness.recording.useless:
        with suppress(Unknown):
            return play(harness, watched, roughly(candidate), played=True)[0]
    return play(harness, watched, roughly(candidate))[0]


def confirmed(harness: Harness, watched: dict[bytes, int], found: Found) -> int:
    """How many of ten repetitions came to the same word by the same decisions, each worker taking as many steps."""
    same = 0
    for _ in range(TIMES):
        try:
            with harness.unnoted():
                other, _ = play(harness, watched, exactly(found.choices))
        except Diverged:
            continue
        steps = [[(step.worker, step.kind) for step in each.steps] for each in (other, found)]
        same += other.same_as(found) and other.transitions == found.transitions and steps[0] == steps[1]
    return same


def _candidates(found: Found) -> Iterator[Sequence[Transition]]:
    transitions = found.transitions[: _last_choice(found) + QUIET]
    blocks = [list(group) for _, group in groupby(transitions, key=_whose)]
    for first in range(len(blocks)):
        for second in range(first + 2, len(blocks)):
            if _whose(blocks[first][0]) == _whose(blocks[second][0]):
                yield _flat(
                    [*blocks[: first + 1], blocks[second], *blocks[first + 1 : second], *blocks[second + 1 :]]
                )
                yield _flat([*blocks[:first], *blocks[first + 1 : second], blocks[first], *blocks[second:]])
    for first in range(len(blocks)):
        yield _flat(blocks[:first] + blocks[first + 1 :])
    yield from _put_off(blocks)
    yield from _earlier(transitions)


def _last_choice(found: Found) -> int:
    """What comes after it nobody chose: a waiter may poll a hundred times, until it is clear that it always will."""
    return max((at for at, choice in enumerate(found.choices) if choice), default=0)


def _put_off(blocks: Sequence[Block]) -> Iterator[Sequence[Transition]]:
    """The end of a block comes later, with the next one of the same worker: what blocked others no longer does."""
    for first, block in enumerate(blocks):
        later = (n for n in range(first + 2, len(blocks)) if _whose(blocks[n][0]) == _whose(block[0]))
        if (second := next(later, None)) is None:
            continue
        for cut in range(len(block) - 1, 0, -1):
            yield _flat(
                [
                    *blocks[:first],
                    block[:cut],
                    *blocks[first + 1 : second],
                    [*block[cut:], *blocks[second]],
                    *blocks[second + 1 :],
                ]
            )


def _earlier(transitions: Sequence[Transition]) -> Iterator[Sequence[Transition]]:
    """A worker is struck earlier: without the last steps that it took before, first without all of them."""
    for at, fault in enumerate(transitions):
        if not fault.cost or fault.kind in STEPS:
            continue
        own = [n for n in range(at) if transitions[n].kind in STEPS and _whose(transitions[n]) == fault.who]
        for first in range(len(own)):
            yield [transition for n, transition in enumerate(transitions) if n not in own[first:]]


def _whose(transition: Transition) -> str:
    return transition.who if transition.kind in (*STEPS, Kind.CRASH) else transition.kind.value


def _flat(blocks: Sequence[Block]) -> list[Transition]:
    return [transition for block in blocks for transition in block]
