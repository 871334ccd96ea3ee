"""The reductions leave out no verdict and no final state: the search without any is the referee. And it would
notice: with a relation that is wrong on purpose, the two disagree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from locks.naive_lock import NaiveLock
from lost_update_lab.model.bounds import SECOND, Fault, Reduction
from lost_update_lab.search import independence
from lost_update_lab.search.search import SearchResult
from tests.lost_update_lab import bank

Explore = Callable[..., SearchResult]
CRASH = frozenset({Fault.CRASH})


def naive(own: bank.Bank) -> Any:
    return NaiveLock("lock", redis=own.redis)


def in_a_transaction(own: bank.Bank, amount: int) -> str:
    """No lock, but a transaction around it: what is written is seen by others later."""
    with own.sql.transaction():
        return bank.add(own, amount)


def told(result: SearchResult) -> tuple[Any, ...]:
    return set(result.counts), result.finals, result.exhausted


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    ("deposit", "bounds"),
    [
        (bank.no_lock, {"faults": 1, "kinds": CRASH}),
        (bank.select_for_update, {"faults": 1, "kinds": CRASH}),
        pytest.param(in_a_transaction, {"faults": 1, "kinds": CRASH}, marks=pytest.mark.deep),
        pytest.param(bank.optimistic, {"faults": 1, "kinds": CRASH}, marks=pytest.mark.deep),
        (bank.opposite_order, {"faults": 1, "kinds": CRASH}),
        pytest.param(bank.locked_by(naive), {"faults": 1, "kinds": CRASH}, marks=pytest.mark.deep),
        (bank.no_lock, {"workers": 3}),
    ],
)
def test_the_search_without_reduction_finds_the_same(
    explore: Explore, deposit: Any, bounds: dict[str, Any]
) -> None:
    """The referee: every order of every step, every poll, nothing left out."""
    reduced = explore(deposit, patience=SECOND, **bounds)
    referee = explore(deposit, patience=SECOND, **bounds, reduction=Reduction.NONE, recorded=False)
    assert told(reduced) == told(referee)
    assert referee.exhausted
    assert reduced.schedules < referee.schedules


def without_the_worker(server: bytes, worker: bytes) -> Iterator[bytes]:
    """A wrong relation: as if a step did the same whatever its worker has read before."""
    yield server


@pytest.mark.deep
@pytest.mark.parametrize("deposit", [in_a_transaction, bank.locked_by(naive)])
def test_the_referee_would_notice_a_wrong_relation(
    explore: Explore, monkeypatch: pytest.MonkeyPatch, deposit: Any
) -> None:
    monkeypatch.setattr(independence, "depends_on", without_the_worker)
    reduced = explore(deposit, patience=SECOND)
    assert reduced.exhausted
    assert told(reduced) != told(explore(deposit, patience=SECOND, reduction=Reduction.NONE, recorded=False))
