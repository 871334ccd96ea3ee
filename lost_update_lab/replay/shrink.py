"""Make a counterexample smaller: fewer switches between workers, then fewer steps, with the same faults.

Before a schedule with more faults is shown for a word, the search has covered every schedule with fewer.

How far it goes is bounded by tries, not by time: so a counterexample has the same id on every machine. Time bounds only
what the budget bounds, as it bounds the search (`ends`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from math import inf
from time import perf_counter as _now

from lost_update_lab.harness import Harness
from lost_update_lab.harness.play import NotSmaller, play
from lost_update_lab.model.errors import Broken, Unknown
from lost_update_lab.model.transitions import STEPS, Kind, Transition
from lost_update_lab.replay.prefix_tree import PrefixTree
from lost_update_lab.runs.found import Found, SearchResult, Size
from lost_update_lab.schedule.schedule_id import Diverged, exactly, in_time, roughly
from lost_update_lab.schedule.world import Chooser

Block = list[Transition]
MOST_TRIES = 150
#: … of which at most this many are unknown, and have to be executed
MOST_EXECUTED = 40
TIMES = 10
#: decisions after the last choice that may still be moved
QUIET = 8
#: … and that belong to what a worker does as a whole
WHOLE = 40
#: seconds beyond the budget for shrinking all counterexamples of a search that has used it up
BEYOND = 15.0
log = logging.getLogger(__name__)


def ends(searched: SearchResult) -> float:
    """Until when its counterexamples may be shrunk, on the performance counter."""
    budget = searched.bounds.budget
    return inf if budget is None else _now() + max(budget - searched.seconds, 0.0) + BEYOND


def shrink(computed: PrefixTree, found: Found, until: float = inf) -> Found:
    """Return a schedule of the same word that is no larger.

    Blocks of one worker's steps are moved together, moved away, or left out, as long as that helps, but not beyond
    `until` on the performance counter.
    """
    harness = computed.harness
    best, tries, better, before = found, 0, True, harness.runs
    while better:
        better = False
        for candidate in _candidates(best):
            if tries >= MOST_TRIES or harness.runs - before >= MOST_EXECUTED or _now() > until:
                break
            tries += 1
            smaller = _come_to(computed, roughly(candidate), best.size)
            if smaller and smaller.same_as(found) and smaller.size < best.size:
                best, better = smaller, True
                break
    return best


def repeatable(
    harness: Harness,
    watched: dict[bytes, int],
    found: Found,
    until: float = inf,
    witness: Callable[[Found], Found] | None = None,
) -> tuple[Found, int]:
    """Return the shrunk schedule, and how many of ten repetitions came out the same. One that cannot be repeated is
    returned as it was found, with 0. `witness`: executes the schedule, and returns more of it; that is one of the
    repetitions."""
    computed = PrefixTree(harness, watched)
    try:
        if same := again(computed, found):
            small, first = shrink(computed, same, until), 0
            if witness and (seen := witness(small)) is not small:
                small, first = seen, 1
            return small, confirmed(harness, watched, small, first)
    except (Broken, Diverged, RuntimeError) as error:
        log.warning("a counterexample could not be repeated: %s", error)
    return found, 0


def again(computed: PrefixTree, found: Found) -> Found | None:
    """Replay the schedule, knowing only what is known of the waiters before a search. None if it does not come out the
    same."""
    ways = [roughly(found.transitions)]
    if found.times:
        ways.append(in_time(found.transitions, found.times))
    tried = (_come_to(computed, way) for way in ways)
    return next((same for same in tried if same and same.same_as(found)), None)


def _come_to(computed: PrefixTree, choose: Chooser, below: Size | None = None) -> Found | None:
    """What the schedule comes to: in memory, if enough is known or a worker can be told it. Real code confirms the
    final result. None: it is not smaller than `below`."""
    harness, watched = computed.harness, computed.watched
    while True:
        try:
            return computed.play(choose, below)
        except NotSmaller:
            return None
        except Unknown as unknown:
            if not _fed(harness, watched, choose, unknown.worker):
                break
    if harness.recording and harness.recording.replays:
        with suppress(Unknown):
            return play(harness, watched, choose, played=True)[0]
    return play(harness, watched, choose)[0]


def _fed(harness: Harness, watched: dict[bytes, int], choose: Chooser, worker: int | None) -> bool:
    """Run the worker's code, fed with what is known. Returns whether more is known now."""
    return worker is not None and harness.until_known(partial(harness.feeding.feed, choose, watched, worker))


def confirmed(harness: Harness, watched: dict[bytes, int], found: Found, first: int = 0) -> int:
    """How many of ten repetitions came to the same word by the same decisions, with as many steps of each worker.
    `first`: how many did so already."""
    same = first
    for _ in range(TIMES - first):
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
    yield from _interrupted(found.transitions[: _last_choice(found) + WHOLE])


def _interrupted(transitions: Sequence[Transition]) -> Iterator[Sequence[Transition]]:
    """One worker stops at one place, the others come to their ends, and it goes on: two switches. Moves of one block
    do not lead there if what is between is larger."""
    every = range(len(transitions))
    for who in dict.fromkeys(_worker(each) for each in transitions if each.kind in STEPS):
        its = {n for n in every if _worker(transitions[n]) == who}
        own = {n for n in its if transitions[n].kind in (*STEPS, Kind.RESUME)}
        strikes = {n for n in its - own if transitions[n].cost}
        for at in sorted(n for n in own if transitions[n].kind in STEPS):
            first = {n for n in every if n <= at and (n in own or transitions[n].kind not in STEPS)} | strikes
            last = {n for n in own if n > at}
            between = [n for n in every if n not in first | last]
            yield [transitions[n] for n in (*sorted(first), *between, *sorted(last))]


def _worker(transition: Transition) -> str:
    """… of whose threads it is one."""
    return transition.who.partition(".")[0]


def _last_choice(found: Found) -> int:
    """The last decision that was chosen. The rest follows by itself: a waiter may poll a hundred times until it is
    clear that it always will."""
    return max((at for at, choice in enumerate(found.choices) if choice), default=0)


def _put_off(blocks: Sequence[Block]) -> Iterator[Sequence[Transition]]:
    """Move the end of a block to the next block of the same worker, so that it no longer blocks the others."""
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
    """Strike a worker earlier: without the last steps that it took before, first without all of them."""
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
