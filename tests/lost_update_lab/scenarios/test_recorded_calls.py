"""What a worker calls is a part of its answer: a mocked gateway that charges twice, mails."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Any
from unittest import mock

import pytest

from lost_update_lab import Mistake, Result

Trial = Callable[..., Result]
GATEWAY = mock.Mock(name="gateway")


def invoices(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS invoice")
    sql.execute("CREATE TABLE invoice (id int PRIMARY KEY, paid bool)")
    sql.execute("INSERT INTO invoice VALUES (1, false)")


def pay(lock: str, sql: Any) -> None:
    """The rows are the same whether the card is charged once or twice."""
    with sql.transaction():
        (paid,) = sql.execute(f"SELECT paid FROM invoice WHERE id = 1 {lock}").fetchone()
        if not paid:
            GATEWAY.charge(10)
            sql.execute("UPDATE invoice SET paid = true WHERE id = 1")


@pytest.mark.parametrize(("lock", "verdict"), [("", "violated"), ("FOR UPDATE", "kept")])
def test_a_card_that_is_charged_twice(trial: Trial, lock: str, verdict: str) -> None:
    """It was kept: a mock's calls were not compared."""
    result = trial([(pay, lock)] * 2, setup=invoices)
    assert (result.verdict, result.notes) == (verdict, ())
    assert verdict == "kept" or "'called the mock gateway.charge': 1" in str(result)


def test_calls_that_do_not_count(trial: Trial) -> None:
    assert trial([(pay, "")] * 2, setup=invoices, ignore=["calls"], control=False).kept


@pytest.mark.parametrize(
    ("workers", "how"),
    [(1, {"retry": "delivered twice"}), (1, {"retry": "redelivered", "crashes": 1}), (2, {"crashes": 1})],
)
def test_calls_that_happen_again_are_not_seen(trial: Trial, workers: int, how: dict[str, Any]) -> None:
    """A task that is delivered twice charges the card twice without the lock, and was said not to need it."""
    result = trial([(pay, "FOR UPDATE")] * workers, setup=invoices, **how)
    assert result.kept
    assert [
        note for note in result.notes if "how often the mock gateway.charge is called counts only" in note
    ]
    assert not [note for note in result.notes if "not needed" in note]


def test_an_invariant_that_asks_a_mock(trial: Trial) -> None:
    """It holds, or not, for what other schedules have called."""
    GATEWAY.reset_mock()
    at_least = trial([(pay, "")] * 2, setup=invoices, control=False, invariant=lambda: GATEWAY.charge.called)
    assert at_least.verdict == "inconclusive"
    assert "the invariant asks what the mock gateway.charge has recorded" in at_least.cause
    with pytest.raises(
        Mistake, match=r"the invariant asks what the mock gateway.charge has recorded.*redis.incr"
    ):
        trial([(pay, "")] * 2, setup=invoices, invariant=lambda: GATEWAY.charge.call_count <= 1)


@pytest.mark.deep
def test_mails(project: Callable[..., CompletedProcess[str]]) -> None:
    done = project("django_mails.py")
    assert done.stdout.split() == ["violated", "kept", "inconclusive"], done.stdout + done.stderr
