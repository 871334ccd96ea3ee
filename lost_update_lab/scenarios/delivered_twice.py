"""A task that is delivered twice: one delivery does it, and the other one finds it done. So all comes to what one
delivery comes to, and nothing is called once more.

    delivery 1: SELECT paid → no        delivery 2: SELECT paid → no
    delivery 1: charges the card        delivery 2: charges it again
    delivery 1: UPDATE … paid = true    delivery 2: UPDATE … paid = true: the rows are as if it had happened once
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations, product

from lost_update_lab.gates.recorded_calls import is_keyed
from lost_update_lab.model.system import Ending
from lost_update_lab.under_test.operations import FinishedSchedule, is_struck
from lost_update_lab.under_test.results import calls_of

CALLED_TWICE = (
    "{} was delivered twice, and each delivery has {}: one after the other, the second one does not"
)


def deliveries(observed: FinishedSchedule, callers: int) -> Iterator[FinishedSchedule]:
    """The same, with the delivery first that is taken for the one that does it: whichever. One that was cut off comes
    first: what it was told does not count."""
    whole = [not is_struck(ending) for ending in observed.endings]
    ways = [
        [way for way in permutations((first, first + callers)) if whole[way[0]] <= whole[way[1]]]
        for first in range(callers)
    ]
    for taken in product(*ways):
        places = [*(first for first, _ in taken), *(second for _, second in taken)]
        answers = tuple(observed.outcome.answers[each] for each in places)
        outcome = replace(observed.outcome, answers=answers)
        yield replace(observed, endings=[observed.endings[each] for each in places], outcome=outcome)


def called_twice(
    names: Sequence[str], endings: Sequence[Ending], alone: Mapping[int, Mapping[str, int]]
) -> Iterator[str]:
    """What both deliveries have called, in a sentence. `alone`: for each caller, what the second one calls when it
    comes after the first one. A call with an idempotency key may come again."""
    for index, again in alone.items():
        first, second = endings[index], endings[index + len(names)]
        if is_struck(first) or is_struck(second):
            continue
        known = calls_of(first.result)
        for call, count in calls_of(second.result).items():
            if count > again.get(call, 0) and not (is_keyed(call) and call in known):
                yield CALLED_TWICE.format(names[index], call)
