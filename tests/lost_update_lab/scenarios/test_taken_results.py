"""What an invariant is given of the workers that failed, crashed or returned nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lost_update_lab import Result
from lost_update_lab.invariants import succeeded
from lost_update_lab.under_test.false_results import false_error

Trial = Callable[..., Result]


def accounts(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS account")
    sql.execute("CREATE TABLE account (id int PRIMARY KEY, balance int)")
    sql.execute("INSERT INTO account VALUES (1, 50)")


def test_what_a_crashed_worker_hands_to_an_invariant_is_false(trial: Trial) -> None:
    """Without that, one that crashed before it did anything had redeemed the voucher, too."""
    right: list[Any] = [(redeem_at_most_once, "Ann"), (redeem_at_most_once, "Bob")]
    both_did = lambda a, b: not (a and b), "both redeemed it"
    assert trial(right, setup=accounts, invariant=both_did, crashes=1).kept


class Refused(Exception):
    def __init__(self, who: str, left: int) -> None:
        super().__init__(f"{who}: {left} left")
        self.left = left


def redeem_or_refuse(who: str, sql: Any) -> str:
    if not redeem_at_most_once(who, sql):
        raise Refused(who, 0)
    return who


@pytest.mark.parametrize(
    ("asked", "verdict"),
    [
        (lambda a, b: not (a and b), "kept"),
        (lambda a, b: bool(a) != bool(b), "kept"),
        (lambda a, b: bool(a and b), "violated"),
        (lambda *all_: [each.left for each in all_ if isinstance(each, Refused)] == [0], "kept"),
    ],
)
def test_an_error_is_false(trial: Trial, asked: Callable[..., bool], verdict: str) -> None:
    """It was true: a right voucher was accused, and one that nobody ever got would have been kept."""
    right: list[Any] = [(redeem_or_refuse, "Ann"), (redeem_or_refuse, "Bob")]
    assert trial(right, setup=accounts, invariant=asked, control=False).verdict == verdict


def test_false_errors_are_the_same_otherwise() -> None:
    for error in (
        Refused("Ann", 3),
        KeyError("x"),
        OSError(2, "gone"),
        ExceptionGroup("two", [ValueError()]),
    ):
        error.__cause__ = cause = ValueError()
        made = false_error(error)
        assert (bool(made), str(made), repr(made), made.__cause__) == (False, str(error), repr(error), cause)
        assert (isinstance(made, type(error)), vars(made)) == (True, vars(error))

    class OwnTruth(Exception):
        def __len__(self) -> int:
            return 2

    assert false_error(own := OwnTruth()) is own


def redeem_silently(sql: Any) -> None:
    """It is no lock that protects this; the test below is about what it returns."""
    redeem_at_most_once("", sql)


@pytest.mark.parametrize("never", [lambda a, b: not (a and b), lambda *all_: sum(map(bool, all_)) < 2])
def test_an_invariant_over_the_truth_of_what_is_always_none(trial: Trial, never: Callable[..., bool]) -> None:
    """It cannot fail, and was kept."""
    result = trial([redeem_silently] * 2, setup=accounts, control=False, invariant=(never, "both did"))
    assert (result.verdict, result.exhausted) == ("inconclusive", True)
    assert result.cause.startswith(
        "the invariant (both did) holds whatever happens: it asks whether the answer of A"
    )
    assert "succeeded(a)" in result.remedy


@pytest.mark.parametrize(
    "asked",
    [
        lambda a, b: succeeded(a) and succeeded(b),
        lambda a, b: not isinstance(a, Refused) and not isinstance(b, Refused),
        lambda a, b: True,
    ],
)
def test_one_that_asks_for_errors_only(trial: Trial, asked: Callable[..., bool]) -> None:
    result = trial([redeem_silently] * 2, setup=accounts, control=False, invariant=asked)
    assert (result.verdict, result.notes) == ("kept", ())


def redeem_at_most_once(who: str, sql: Any) -> bool:
    with sql.transaction():
        (left,) = sql.execute("SELECT balance FROM account WHERE id = 1 FOR UPDATE").fetchone()
        sql.execute("UPDATE account SET balance = 0 WHERE id = 1")
        return bool(left)
