"""What a worker calls is a part of its answer: a mocked gateway that charges twice, mails."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Any
from unittest import mock
from uuid import uuid4

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
    [(1, {"retry": "redelivered", "crashes": 1}), (2, {"crashes": 1})],
)
def test_calls_that_happen_again_are_not_seen(trial: Trial, workers: int, how: dict[str, Any]) -> None:
    """A task that is delivered again charges the card twice without the lock, and was said not to need it."""
    result = trial([(pay, "FOR UPDATE")] * workers, setup=invoices, **how)
    assert result.kept
    assert [
        note for note in result.notes if "how often the mock gateway.charge is called counts only" in note
    ]
    assert not [note for note in result.notes if "not needed" in note]


def pay_by_key(key: str, sql: Any) -> None:
    """The other side charges once for each key."""
    with sql.transaction():
        (paid,) = sql.execute("SELECT paid FROM invoice WHERE id = 1").fetchone()
        if not paid:
            GATEWAY.charge(10, idempotency_key=key or str(uuid4()))
            sql.execute("UPDATE invoice SET paid = true WHERE id = 1")


def counted_pay(lock: str, sql: Any) -> None:
    """Each delivery is counted, also when the other one is done."""
    GATEWAY.received()
    pay(lock, sql)


@pytest.mark.parametrize("faults", [{}, pytest.param({"crashes": 1}, marks=pytest.mark.deep)])
@pytest.mark.parametrize(
    ("operation", "argument", "charged"),
    [
        (pay, "", True),
        (pay, "FOR UPDATE", False),
        (counted_pay, "", True),
        (counted_pay, "FOR UPDATE", False),
        (pay_by_key, "invoice 1", False),
        (pay_by_key, "", True),
    ],
)
def test_a_card_that_each_delivery_of_a_task_charges(
    trial: Trial, operation: Any, argument: str, charged: bool, faults: dict[str, int]
) -> None:
    """It was kept, since the rows are as if it had happened once."""
    result = trial([(operation, argument)], setup=invoices, retry="delivered twice", control=False, **faults)
    assert (result.verdict, result.exhausted) == ("violated" if charged else "kept", True), str(result)
    assert ("each delivery has called the mock gateway.charge" in str(result)) == charged
    counts_only = [note for note in result.notes if "counts only of workers" in note]
    assert bool(counts_only) == bool(faults)


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
