"""Make a counterexample smaller: fewer changes of worker, then fewer steps; the same faults.

The search has covered every schedule with fewer faults before one with more is shown for that word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby

from loadtest.explorer.options import STEPS, Kind, Option
from loadtest.explorer.playing import Unknown
from loadtest.explorer.replay import exactly, play, roughly
from loadtest.explorer.result import Found
from loadtest.explorer.stage import Stage

Block = list[Option]
MOST_TRIES = 150
TIMES = 10


def shrink(stage: Stage, watched: dict[bytes, int], found: Found) -> Found:
    """Return a schedule of the same word that is no larger; each was really executed.

    Blocks of one worker's steps are moved next to each other, moved away, or left out, as long as that helps.
    """
    best, tries, better = found, 0, True
    while better and tries < MOST_TRIES:
        better = False
        for candidate in _candidates(best):
            tries += 1
            smaller = _tried(stage, watched, candidate)
            if (smaller.word, smaller.faults) == (
                found.word,
                found.faults,
            ) and smaller.size < best.size:
                best, better = smaller, True
                break
            if tries >= MOST_TRIES:
                break
    return best


def _tried(stage: Stage, watched: dict[bytes, int], candidate: Sequence[Option]) -> Found:
    """By what is known of the workers, if that is enough; what comes out at last is confirmed by their real code."""
    if stage.recording and not stage.recording.useless:
        with suppress(Unknown):
            return play(stage, watched, roughly(candidate), played=True)[0]
    return play(stage, watched, roughly(candidate))[0]


def confirmed(stage: Stage, watched: dict[bytes, int], found: Found) -> int:
    """How many of ten repetitions came to the same word with the same steps."""
    same = 0
    for _ in range(TIMES):
        again, _ = play(stage, watched, exactly(found.choices))
        same += again.word == found.word and again.options == found.options
    return same


def _candidates(found: Found) -> Iterator[Sequence[Option]]:
    blocks = [list(group) for _, group in groupby(found.options, key=_whose)]
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


def _put_off(blocks: Sequence[Block]) -> Iterator[Sequence[Option]]:
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


def _whose(option: Option) -> str:
    return option.who if option.kind in (*STEPS, Kind.CRASH) else option.kind.value


def _flat(blocks: Sequence[Block]) -> list[Option]:
    return [option for block in blocks for option in block]
