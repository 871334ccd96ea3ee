"""What invariants were given as results. One that asks only whether they are true cannot tell anything of workers that
return None, whatever they did.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

from lost_update_lab.scenarios.commits import holds
from lost_update_lab.under_test.false_results import Crashed
from lost_update_lab.under_test.scenario import Invariant, Mistake

#: combinations of results that are tried at most; different results of a worker that are kept
COMBINATIONS, KEPT_APART = 512, 8


class TakenResults:
    """Results with which invariants held."""

    def __init__(self) -> None:
        #: invariant → for each place, its results by their texts
        self._of: dict[int, list[dict[str, Any]]] = {}

    def add(self, invariant: Invariant, results: Sequence[Any]) -> None:
        seen = self._of.setdefault(id(invariant), [{} for _ in results])
        for known, result in zip(seen, results, strict=True):
            if len(known) < KEPT_APART and not isinstance(result, Crashed):
                known.setdefault(f"{type(result).__qualname__} {result!r}", result)

    def nothing_said(self, invariant: Invariant) -> Sequence[int]:
        """The places of workers which return nothing, if this invariant holds whatever the workers come to, and would
        not if those had returned something. It has to ask no server."""
        seen = self._of.get(id(invariant), [])
        silent = [
            place for place, known in enumerate(seen) if None in known.values() and _says_nothing(known)
        ]
        choices = [[*known.values(), Crashed()] for known in seen]
        if not silent or invariant.asked != {False} or prod(map(len, choices)) > COMBINATIONS:
            return ()
        said = [[True, *each] if place in silent else each for place, each in enumerate(choices)]
        return silent if _all_hold(invariant, choices) and not _all_hold(invariant, said) else ()


def _says_nothing(known: dict[str, Any]) -> bool:
    return all(each is None or isinstance(each, BaseException) for each in known.values())


def _all_hold(invariant: Invariant, choices: Sequence[Sequence[Any]]) -> bool:
    try:
        return all(holds(invariant, *each) for each in product(*choices))
    except Mistake:  # it cannot be asked about all of them
        return False
