"""Make a counterexample smaller: fewer faults, then fewer changes of worker, then fewer steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from loadtest.explorer.options import FREE, Kind, Option
from loadtest.explorer.replay import exactly, play, roughly
from loadtest.explorer.result import Found
from loadtest.explorer.stage import Stage

Block = list[Option]
MOST_TRIES = 150
TIMES = 10


def shrink(stage: Stage, watched: dict[bytes, int], found: Found) -> Found:
    """Return a schedule of the same verdict that is no larger; each was really executed.

    Blocks of one worker's steps are moved next to each other, moved away, or left out, as long as that helps.
    """
    best, tries, better = found, 0, True
    while better and tries < MOST_TRIES:
        better = False
        for candidate in _candidates(best):
            tries += 1
            smaller, _ = play(stage, watched, roughly(candidate))
            if smaller.verdict == found.verdict and smaller.size < best.size:
                best, better = smaller, True
                break
            if tries >= MOST_TRIES:
                break
    return best


def confirmed(stage: Stage, watched: dict[bytes, int], found: Found) -> int:
    """How many of ten repetitions had the same verdict with the same steps."""
    same = 0
    for _ in range(TIMES):
        again, _ = play(stage, watched, exactly(found.choices))
        same += again.verdict == found.verdict and again.options == found.options
    return same


def _candidates(found: Found) -> Iterator[Sequence[Option]]:
    for place, option in enumerate(found.options):
        if option.kind not in FREE:
            plain = [Option(Kind.STEP, option.who)] if option.kind is Kind.LOST_REPLY else []
            yield [*found.options[:place], *plain, *found.options[place + 1 :]]
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


def _whose(option: Option) -> str:
    return option.who if option.kind in (Kind.STEP, Kind.LOST_REPLY, Kind.CRASH) else option.kind.value


def _flat(blocks: Sequence[Block]) -> list[Option]:
    return [option for block in blocks for option in block]
