"""The same question asked several times: for each pair of operations, at each isolation level."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import update_wrapper, wraps
from itertools import combinations_with_replacement
from typing import Any, TypeVar

from psycopg import IsolationLevel

from lost_update_lab.model.bounds import Fault
from lost_update_lab.scenarios.isolation import ISOLATION_LEVELS, Levels, level_of
from lost_update_lab.scenarios.result import (
    INCONCLUSIVE,
    KEPT,
    NOT_TRIED,
    SURVIVES,
    UNDECIDED,
    Mutation,
    Result,
    Tried,
)
from lost_update_lab.under_test.operations import BREACHES
from lost_update_lab.under_test.scenario import MOST_WORKERS, Mistake, Operation, Scenario, Worker, worker

T = TypeVar("T")
#: retry=: the worker's task is delivered to another process too. After a crash; or, whether there was one or not, at
#: any time: the acknowledgement of the first one was lost, or it took longer than the queue waits
REDELIVERED, TWICE = "redelivered", "delivered twice"
MOST_REDELIVERED = MOST_WORKERS // 2
#: gravest first
GRAVITY = (*BREACHES, INCONCLUSIVE, KEPT)


def parts_of(scenario: Scenario, pairs: Iterable[Any] = (), isolation: Levels = "") -> list[Scenario]:
    """The scenario itself, or one scenario for each pair and each isolation level. Raises Mistake."""
    levels = [isolation] if isinstance(isolation, str | IsolationLevel) else list(isolation)
    if not levels:
        raise Mistake(
            f"isolation=[] names no level: {', '.join(ISOLATION_LEVELS)}. Without isolation=, each has its own"
        )
    paired = list(_paired(scenario, list(pairs)))
    found = []
    for one in paired:
        for level in levels:
            name = level_of(level).name if level else ""
            words = [one.part, name.lower().replace("_", "-") if len(levels) > 1 else ""]
            found.append(replace(one, isolation=name, part=",".join(filter(None, words))))
    return found


def _paired(scenario: Scenario, pairs: Sequence[Any]) -> Iterator[Scenario]:
    if not pairs:
        yield scenario
        return
    if scenario.workers:
        raise Mistake("pairs= makes the workers itself, two for each pair: name no workers beside it")
    operations = [_operation(each) for each in pairs]
    names = _names(operations)
    for one, other in combinations_with_replacement(range(len(operations)), 2):
        called = (names[one], names[other]) if one != other else (f"{names[one]} 1", f"{names[one]} 2")
        workers = tuple(Worker(n, (operations[i],)) for n, i in zip(called, (one, other), strict=True))
        yield replace(scenario, workers=workers, part=f"{names[one]}+{names[other]}")


def _operation(given: Any) -> Operation:
    call, *arguments = given if isinstance(given, tuple) else (given,)
    (operation,) = worker("a worker of pairs=", call, *arguments).operations
    return operation


def _names(operations: Sequence[Operation]) -> list[str]:
    """The names of the operations: all different, and without characters that a shell interprets."""
    found: list[str] = []
    for each in operations:
        plain = re.sub(r"[^\w.]+", "-", each.title.rpartition(".")[2]).strip("-")
        same = sum(name.partition("-")[0] == plain for name in found)
        found.append(f"{plain}-{same + 1}" if same else plain)
    return found


def chosen(parts: Sequence[Scenario], replay: str) -> tuple[Sequence[Scenario], str]:
    """The parts to run, and the schedule to replay: `v/3a@redeem+refund` belongs to one of them. Raises Mistake."""
    schedule, _, part = replay.partition("@")
    if not replay or (len(parts) == 1 and not part):
        return parts, replay
    if not (found := [each for each in parts if each.part == part]):
        told = ", ".join(f"@{each.part}" for each in parts if each.part) or "no @"
        raise Mistake(f"{replay!r} does not name a part: end it with {told}")
    return found, schedule


def together(name: str, parts: Sequence[Result]) -> Result:
    """One result for all parts: the gravest one, and the row of all."""
    if len(parts) == 1:
        return parts[0]
    worst = min(parts, key=lambda result: GRAVITY.index(result.verdict))
    every = sum(result.schedules for result in parts)
    return replace(
        worst,
        name=name,
        sentence=worst.sentence if worst.kept else f"{worst.part}: {worst.sentence}",
        exhausted=all(result.exhausted for result in parts),
        schedules=every,
        seconds=sum(result.seconds for result in parts),
        notes=tuple(_notes(parts)),
        mutations=tuple(_needed_somewhere(parts)) if worst.kept else (),
        parts=tuple(parts),
    )


def _notes(parts: Sequence[Result]) -> Iterator[str]:
    """Each note once, after the names of its parts unless it is that of all."""
    for note in dict.fromkeys(note for part in parts for note in part.notes):
        its = [part.part for part in parts if note in part.notes]
        yield note if len(its) == len(parts) else f"{', '.join(its)}: {note}"


def _needed_somewhere(parts: Sequence[Result]) -> Iterable[Tried]:
    """Each mutation once: by the part that breaks without that piece, if there is one."""
    found: dict[Mutation, Tried] = {}
    for tried in (each for part in parts for each in part.mutations):
        before = found.setdefault(tried.mutation, tried)
        if _weight(tried) > _weight(before):
            found[tried.mutation] = tried
    return found.values()


def _weight(tried: Tried) -> int:
    return {SURVIVES: 0, UNDECIDED: 1, NOT_TRIED: 1}.get(tried.word, 2)


def repeated(scenario: Scenario, retry: Any) -> Scenario:
    """The scenario with the retries of its operations' callers. Raises Mistake."""
    given = retry if isinstance(retry, tuple) else (retry,)
    errors = tuple(each for each in given if not _deliveries(each))
    if errors != (None,) and errors:
        workers = [
            replace(
                each,
                operations=tuple(
                    retried(one, errors if len(errors) > 1 else errors[0]) for one in each.operations
                ),
            )
            for each in scenario.workers
        ]
        scenario = replace(scenario, workers=tuple(workers))
    return _redelivered(scenario, TWICE in _deliveries(retry)) if is_redelivered(retry) else scenario


def is_redelivered(retry: Any) -> bool:
    """Is a task delivered again?"""
    return bool(_deliveries(retry))


def _deliveries(retry: Any) -> list[str]:
    given = retry if isinstance(retry, tuple) else (retry,)
    return [each for each in given if isinstance(each, str) and each in (REDELIVERED, TWICE)]


def _redelivered(scenario: Scenario, twice: bool) -> Scenario:
    """Each worker, and what its task queue does once that has crashed, or (`twice`) at any time: another process does
    the same from the beginning. Raises Mistake."""
    word = TWICE if twice else REDELIVERED
    if not twice and not (scenario.faults and Fault.CRASH in scenario.kinds):
        told = "delivers a task again after a crash, and none may come"
        raise Mistake(f"retry={word!r} {told}: say crashes=1, or retry={TWICE!r}")
    if len(scenario.workers) > MOST_REDELIVERED:
        raise Mistake(f"retry={word!r} takes at most {MOST_REDELIVERED} workers: each comes twice")
    again = tuple(replace(each, name=f"{each.name} again") for each in scenario.workers)
    return replace(scenario, workers=(*scenario.workers, *again), redelivered=True, twice=twice)


def retried(operation: Operation, retry: Any) -> Operation:
    """The operation with its caller's retries. `retry`: exceptions after which it is tried again, up to three times in
    all; or a function that takes the operation and returns it wrapped."""
    errors = retry if isinstance(retry, tuple) else (retry,)
    if all(isinstance(each, type) and issubclass(each, Exception) for each in errors):
        return replace(operation, call=retrying(operation.call, *errors))
    if not callable(retry):
        told = f"retry= takes exceptions, or a function that wraps an operation, not {retry!r}"
        words = f"retry=SerializationFailure, retry={REDELIVERED!r}, retry={TWICE!r}"
        raise Mistake(f"{told}. Write {words}, or retry=tenacity.retry(stop=stop_after_attempt(3))")
    wrapped = retry(operation.call)
    return replace(operation, call=update_wrapper(wrapped, operation.call))


def retrying(call: Callable[..., T], *errors: type[Exception], times: int = 3) -> Callable[..., T]:
    """The operation as its caller calls it: again, up to `times`, when it raises one of these errors."""

    @wraps(call)
    def again(*arguments: Any, **keywords: Any) -> T:
        for _ in range(times - 1):
            try:
                return call(*arguments, **keywords)
            except errors:
                continue
        return call(*arguments, **keywords)

    return again
