"""Overlaps, against the quadratic reference."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from ledger.reconcile import ClientOperation, ClientOutcome
from loadtest.history.observed import Observed, overlaps


def spans(*pairs: tuple[float, float]) -> list[ClientOperation]:
    return [ClientOperation(f"k{i}", 1, ClientOutcome.OK, start, end) for i, (start, end) in enumerate(pairs)]


def quadratic(operations: list[ClientOperation]) -> int:
    proper = [each for each in operations if each.started < each.ended]
    return sum(
        any(a is not b and a.started < b.ended and b.started < a.ended for b in proper) for a in proper
    )


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=25))
def test_overlaps_as_the_quadratic_reference_counts_them(pairs):
    operations = spans(*pairs)
    assert overlaps(operations) == quadratic(operations)


def test_examples():
    assert overlaps([]) == 0
    assert overlaps(spans((0, 1))) == 0
    assert overlaps(spans((0, 1), (2, 3))) == 0
    assert overlaps(spans((0, 1), (1, 2))) == 0, "end to start is no overlap"
    assert overlaps(spans((0, 2), (1, 3), (5, 6))) == 2
    assert overlaps(spans((0, 10), (1, 2), (3, 4))) == 3
    assert overlaps(spans((0, 1), (0, 1))) == 2


def test_a_clock_that_jumped_back_overlaps_nothing():
    assert overlaps(spans((5, 1), (0, 10))) == 0


def test_an_operation_that_never_ended_does_not_make_overlaps_of_all_that_came_later():
    assert overlaps(spans((0, inf), (1, 2), (3, 4))) == 0


def test_counts_over_accounts():
    ok, fail, info = ClientOutcome.OK, ClientOutcome.FAIL, ClientOutcome.INFO
    observed = Observed.of(
        {
            "A": [
                ClientOperation("t", -1, ok, 0, 2),
                ClientOperation("u", 1, fail, 1, 3),
                ClientOperation("u", 1, ok, 4, 5),
            ],
            "B": [
                ClientOperation("t", 1, ok, 0, 2),
                ClientOperation("v", 1, info, 2, 3),
                ClientOperation("w", 1, fail, 4, 5),
            ],
        }
    )
    assert observed == Observed(acknowledged=3, failed=1, unknown=1, overlaps=2)


def test_operations_on_different_accounts_do_not_overlap():
    assert Observed.of({"A": spans((0, 2)), "B": spans((1, 3))}).overlaps == 0
