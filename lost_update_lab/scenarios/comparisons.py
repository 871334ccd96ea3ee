"""The same question asked several times: of each pair of operations, at each isolation level."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from itertools import combinations_with_replacement
from typing import Any, TypeVar

from lost_update_lab.scenarios.explore import explore
from lost_update_lab.scenarios.isolation import LEVELS
from lost_update_lab.scenarios.result import Result
from lost_update_lab.scenarios.scenario import Operation, Worker, worker

T = TypeVar("T")


def explore_pairs(operations: Iterable[Any], **transitions: Any) -> dict[tuple[str, str], Result]:
    """Each pair of these operations, each with itself too. An operation is a callable, or `(callable, arguments …)`;
    `transitions`: those of `explore`. → the result of each pair, by the operations' names"""
    made = [_operation(each) for each in operations]
    found = {}
    for one, other in combinations_with_replacement(made, 2):
        names = one.title, other.title
        pair = [Worker("first", (one,)), Worker("second", (other,))]
        found[names] = explore(pair, name=" and ".join(names), **transitions)
    return found


def _operation(given: Any) -> Operation:
    call, *arguments = given if isinstance(given, tuple) else (given,)
    (operation,) = worker("a worker", call, *arguments).operations
    return operation


def explore_isolation(
    workers: Sequence[Any], levels: Sequence[str] = LEVELS, **transitions: Any
) -> dict[str, Result]:
    """The same scenario with transactions that begin at each of these levels. → the result of each"""
    return {level: explore(workers, isolation=level, name=level, **transitions) for level in levels}


def row(results: Mapping[Any, Result]) -> str:
    """One line: what each came to."""
    named = ((key if isinstance(key, str) else " × ".join(key), result) for key, result in results.items())
    return " | ".join(f"{name}: {result.verdict}" for name, result in named)


def retrying(call: Callable[..., T], *errors: type[Exception], times: int = 3) -> Callable[..., T]:
    """The operation as its caller calls it: again, up to `times`, when it raises one of these errors."""

    @wraps(call)
    def retried(*arguments: Any, **keywords: Any) -> T:
        for _ in range(times - 1):
            try:
                return call(*arguments, **keywords)
            except errors:
                continue
        return call(*arguments, **keywords)

    return retried
