"""`retry="redelivered"`: a task queue hands the task of a worker that has crashed to another one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from lost_update_lab import Mistake, Result, worker

Trial = Callable[..., Result]
SCHEMA = """
CREATE TABLE invoice (id int PRIMARY KEY, paid bool NOT NULL DEFAULT false);
CREATE TABLE charge (id serial PRIMARY KEY, invoice int, key text UNIQUE);
INSERT INTO invoice (id) VALUES (1), (2);
"""


def invoices() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        connection.execute(SCHEMA)


def pay(invoice: int, sql: Any, key: str | None = None) -> str:
    """Charges, and only then writes down that it did: two transactions."""
    ((paid,),) = sql.execute("SELECT paid FROM invoice WHERE id = %s", [invoice]).fetchall()
    if paid:
        return "paid already"
    sql.execute(
        "INSERT INTO charge (invoice, key) VALUES (%s, %s) ON CONFLICT (key) DO NOTHING", [invoice, key]
    )
    sql.execute("UPDATE invoice SET paid = true WHERE id = %s", [invoice])
    return "paid"


def pay_with_a_key(invoice: int, sql: Any) -> str:
    return pay(invoice, sql, f"invoice {invoice}")


def charges() -> int:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        return int(connection.execute("SELECT count(*) FROM charge").fetchone()[0])  # type: ignore[index]


def of(operation: Callable[..., Any], *invoices: int) -> list[Any]:
    return [worker(f"task {each}", operation, each) for each in invoices]


@pytest.mark.deep
@pytest.mark.parametrize("invariant", [None, (lambda: charges() <= 1, "charged twice")])
def test_a_task_that_is_delivered_again_charges_twice(trial: Trial, invariant: Any) -> None:
    how: dict[str, Any] = {"setup": invoices, "crashes": 1, "invariant": invariant}
    assert trial(of(pay, 1), retry="redelivered", **how).verdict == "violated"
    found = trial(of(pay_with_a_key, 1), retry="redelivered", **how)
    assert (found.verdict, found.exhausted) == ("kept", True), str(found)
    assert "every order of task 1 delivered again after a crash, at most 1 fault (crash)" in found.bounds


@pytest.mark.deep
def test_the_smallest_order_shows_the_second_delivery(trial: Trial) -> None:
    found = trial(of(pay, 1), setup=invoices, crashes=1, retry="redelivered")
    assert found.schedule
    assert [each.who for each in found.schedule.moves if each.kind == "step"][-1] == "task 1 again"
    assert [each.kind for each in found.schedule.moves].count("crash") == 1
    assert "the outcome is that of no serial order" in found.sentence


def once_each() -> bool:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        found = connection.execute("SELECT count(*), count(DISTINCT invoice) FROM charge").fetchone()
    return found is not None and found[0] == found[1]


@pytest.mark.deep
def test_two_tasks_that_are_delivered_again(trial: Trial) -> None:
    """A crash alone charges nobody twice: only what follows it does."""
    how: dict[str, Any] = {"setup": invoices, "crashes": 1, "invariant": (once_each, "charged twice")}
    assert trial(of(pay, 1, 2), **how).kept
    found = trial(of(pay, 1, 2), retry="redelivered", **how)
    assert (found.verdict, found.hazards) == ("violated", {"contention": "kept", "crash": "violated"})
    del how["invariant"]
    kept = trial(of(pay_with_a_key, 1, 2), retry="redelivered", **how)
    assert (kept.verdict, kept.exhausted) == ("kept", True), str(kept)


def pay_at_once(invoice: int, sql: Any, key: str | None = None) -> None:
    sql.execute("INSERT INTO charge (invoice, key) VALUES (%s, %s)", [invoice, key])


def test_a_crash_after_the_last_command(trial: Trial) -> None:
    """The work is done, and the queue does not know."""
    found = trial(of(pay_at_once, 1), setup=invoices, crashes=1, retry="redelivered")
    assert found.verdict == "violated"


@pytest.mark.deep
@pytest.mark.parametrize("retry", ["redelivered", "delivered twice"])
def test_a_queue_delivers_until_one_delivery_ends(trial: Trial, retry: str) -> None:
    """With two crashes, both deliveries died before they had begun: the task was lost, and the code accused."""
    law = lambda: charges() == 1, "the invoice is charged once"
    for invariant in (law, None):
        result = trial(of(pay_with_a_key, 1), setup=invoices, invariant=invariant, retry=retry, crashes=2)
        assert result.verdict == "kept", str(result)


def test_a_second_delivery_that_fails_is_reported(trial: Trial) -> None:
    def fails(invoice: int, sql: Any) -> None:
        pay_at_once(invoice, sql, "one")

    how: dict[str, Any] = {"setup": invoices, "crashes": 1, "retry": "redelivered"}
    found = trial(of(fails, 1), **how)
    assert found.verdict == "refused"
    assert "task 1 again failed: UniqueViolation" in found.sentence
    assert trial(of(fails, 1), refusals=[psycopg.errors.UniqueViolation], **how).kept


@pytest.mark.deep
def test_a_task_that_is_lost_is_not_kept(trial: Trial) -> None:
    """The second delivery takes what the first one has begun for done."""

    def begins_first(invoice: int, sql: Any) -> None:
        if sql.execute("UPDATE invoice SET paid = true WHERE id = %s AND NOT paid", [invoice]).rowcount:
            sql.execute("INSERT INTO charge (invoice) VALUES (%s)", [invoice])

    found = trial(of(begins_first, 1), setup=invoices, crashes=1, retry="redelivered")
    assert found.verdict == "violated"


@pytest.mark.deep
def test_results_of_a_second_delivery(trial: Trial) -> None:
    seen: list[Any] = []

    def noted(result: Any) -> bool:
        seen.append(str(result))
        return True

    trial(of(pay_with_a_key, 1), setup=invoices, crashes=1, retry="redelivered", invariant=noted)
    assert set(seen) == {"paid", "paid already"}


@pytest.mark.deep
def test_a_callers_retry_beside_it(trial: Trial) -> None:
    def connects(invoice: int) -> None:
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as sql:
            pay_with_a_key(invoice, sql)

    retry = ("redelivered", psycopg.OperationalError)
    how: dict[str, Any] = {"setup": invoices, "crashes": 1, "lost_replies": 1, "faults": 1}
    assert trial(of(connects, 1), retry=retry, **how).kept
    assert trial(of(connects, 1), retry="redelivered", **how).verdict == "violated"


def test_mistakes(trial: Trial) -> None:
    with pytest.raises(Mistake, match="none may come: say crashes=1"):
        trial(of(pay, 1), setup=invoices, retry="redelivered", pauses=1)
    with pytest.raises(Mistake, match="takes at most 4 workers"):
        trial(of(pay, 1, 2, 3, 4, 5), setup=invoices, retry="redelivered", crashes=1)


def pay_under_the_rows_lock(invoice: int, sql: Any) -> str:
    with sql.transaction():
        query = "SELECT paid FROM invoice WHERE id = %s FOR UPDATE"
        ((paid,),) = sql.execute(query, [invoice]).fetchall()
        if not paid:
            sql.execute("INSERT INTO charge (invoice) VALUES (%s)", [invoice])
            sql.execute("UPDATE invoice SET paid = true WHERE id = %s", [invoice])
    return "paid already" if paid else "paid"


@pytest.mark.deep
@pytest.mark.parametrize("invariant", [None, (once_each, "charged twice")])
def test_a_task_that_comes_again_while_it_runs(trial: Trial, invariant: Any) -> None:
    """No fault is needed: the queue waited less long than the task takes, or did not hear its acknowledgement."""
    how: dict[str, Any] = {"setup": invoices, "retry": "delivered twice", "invariant": invariant}
    assert trial(of(pay, 1), **how).verdict == "violated"
    assert trial(of(pay_at_once, 1), **how).verdict == "violated"
    for right in (pay_with_a_key, pay_under_the_rows_lock):
        found = trial(of(right, 1), **how)
        assert (found.verdict, found.exhausted) == ("kept", True), str(found)
        assert "every order of task 1 delivered twice, no fault in each" in found.bounds


@pytest.mark.deep
def test_delivered_twice_and_crashes(trial: Trial) -> None:
    """A crash leaves the task to its other delivery."""
    how: dict[str, Any] = {"setup": invoices, "retry": "delivered twice", "crashes": 1}
    for right in (pay_with_a_key, pay_under_the_rows_lock):
        found = trial(of(right, 1), **how)
        assert (found.verdict, found.exhausted) == ("kept", True), str(found)

    def begins_first(invoice: int, sql: Any) -> None:
        if sql.execute("UPDATE invoice SET paid = true WHERE id = %s AND NOT paid", [invoice]).rowcount:
            sql.execute("INSERT INTO charge (invoice) VALUES (%s)", [invoice])

    found = trial(of(begins_first, 1), **how)
    assert (found.verdict, found.hazards) == ("violated", {"contention": "kept", "crash": "violated"})


@pytest.mark.deep
def test_a_delivery_that_fails_beside_one_that_does_the_task(trial: Trial) -> None:
    def fails(invoice: int, sql: Any) -> None:
        pay_at_once(invoice, sql, "one")

    how: dict[str, Any] = {"setup": invoices, "retry": "delivered twice"}
    found = trial(of(fails, 1), **how)
    assert found.verdict == "refused"
    assert "failed: UniqueViolation" in found.sentence
    assert trial(of(fails, 1), refusals=[psycopg.errors.UniqueViolation], **how).kept


@pytest.mark.deep
def test_two_tasks_that_are_delivered_twice(trial: Trial) -> None:
    how: dict[str, Any] = {"setup": invoices, "retry": "delivered twice"}
    found = trial(of(pay_under_the_rows_lock, 1, 2), **how)
    assert (found.verdict, found.exhausted) == ("kept", True), str(found)
    assert trial(of(pay, 1, 2), **how).verdict == "violated"


def invoice(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS invoice")
    sql.execute("CREATE TABLE invoice (id int PRIMARY KEY, paid boolean NOT NULL)")
    sql.execute("INSERT INTO invoice VALUES (1, false)")


def works_under_a_lease(sql: Any, redis: Any) -> str:
    """The lock keeps the second delivery out, too."""
    if not redis.set("lock", 1, nx=True, ex=30):
        return "in progress"
    time.sleep(60)
    sql.execute("UPDATE invoice SET paid = true")
    return "paid"


def test_a_task_that_crashes_in_its_sleep(trial: Trial) -> None:
    """It crashed at its commands only: that nobody ever pays was kept."""
    law = lambda sql: sql.execute("SELECT paid FROM invoice").fetchone()[0], "nobody has paid"
    result = trial([works_under_a_lease], setup=invoice, retry="redelivered", crashes=1, invariant=law)
    assert result.verdict == "violated"
