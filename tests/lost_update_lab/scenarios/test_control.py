"""The control's notes: what the locks are for, and, where there are none, what an invariant allows that no serial order
comes to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lost_update_lab import Result, worker
from lost_update_lab.invariants import balance_conserved, never_below

Trial = Callable[..., Result]
ABOVE_ZERO = never_below("account.balance")


def accounts(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS account")
    sql.execute("CREATE TABLE account (id int PRIMARY KEY, balance int)")
    sql.execute("INSERT INTO account VALUES (1, 50), (2, 50)")


def add(amount: int, sql: Any) -> None:
    (balance,) = sql.execute("SELECT balance FROM account WHERE id = 1").fetchone()
    sql.execute("UPDATE account SET balance = %s WHERE id = 1", [balance + amount])


def add_in_a_transaction(amount: int, sql: Any) -> None:
    with sql.transaction():
        add(amount, sql)


def add_in_one(amount: int, sql: Any) -> None:
    sql.execute("UPDATE account SET balance = balance + %s WHERE id = 1", [amount])


def transfer(first: int, second: int, amount: int, sql: Any) -> None:
    """Both are locked in one order first."""
    with sql.transaction():
        sql.execute("SELECT FROM account ORDER BY id FOR UPDATE")
        sql.execute("UPDATE account SET balance = balance - %s WHERE id = %s", [amount, first])
        sql.execute("UPDATE account SET balance = balance + %s WHERE id = %s", [amount, second])


def test_locks_that_prevent_a_deadlock(trial: Trial) -> None:
    """The deadlock of the control was told as one of the scenario, and its locks as needed for nothing."""
    result = trial(
        [(transfer, 1, 2, 10), (transfer, 2, 1, 20)],
        setup=accounts,
        invariant=balance_conserved("account.balance"),
    )
    (note,) = result.notes
    assert result.kept
    assert note.startswith(
        "without FOR UPDATE, no order breaks it, but in some the database aborts A and B (deadlock)"
    )


def test_an_invariant_that_a_lost_update_does_not_break(trial: Trial) -> None:
    """Of money that was lost nothing was said: it does not go below zero."""
    result = trial([(add, 40), (add, 30)], setup=accounts, invariant=ABOVE_ZERO, crashes=1)
    (note,) = result.notes
    assert result.kept
    assert note.startswith(
        "the invariant holds, and yet an order comes to what no serial order does: the nearest serial"
    )
    assert "account: here 2 rows (only here: balance 90, id 1)" in note


def pays_once(key: str, sql: Any, redis: Any) -> str:
    """All that keeps it from being paid twice is the mark."""
    if not redis.set(key, 1, nx=True):
        return "paid already"
    sql.execute("UPDATE account SET balance = balance - 5 WHERE id = 1")
    return "paid"


def test_a_mark_is_a_lock_that_is_needed(trial: Trial) -> None:
    """Without it both orders pay twice. That was taken for right, and the mark for needless."""
    result = trial([(pays_once, "k"), (pays_once, "k")], setup=accounts)
    assert (result.verdict, result.notes) == ("kept", ())


def test_the_truth_of_a_result(trial: Trial) -> None:
    """`assert explore(...)` passed whatever was found."""
    assert trial([(add_in_one, 40), (add_in_one, 30)], setup=accounts)
    assert not trial([(add, 40), (add, 30)], setup=accounts)


def test_one_that_has_nothing_to_allow(trial: Trial) -> None:
    result = trial([(add_in_one, 40), (add_in_one, 30)], setup=accounts, invariant=ABOVE_ZERO, crashes=1)
    assert (result.verdict, result.notes) == ("kept", ())


def test_the_notes_of_all_parts(trial: Trial) -> None:
    """Those of the first part alone were shown."""
    workers = [worker("Ann", add_in_a_transaction, 40), worker("Bob", add_in_a_transaction, 30)]
    levels = ["repeatable read", "read committed"]
    result = trial(workers, setup=accounts, invariant=ABOVE_ZERO, isolation=levels, refusals=[Exception])
    assert [note.partition(": ")[0] for note in result.notes] == ["read-committed"]


def take_or_try_again(amount: int, sql: Any) -> str:
    """It is locked, and would notice without the lock."""
    with sql.transaction():
        (balance,) = sql.execute("SELECT balance FROM account WHERE id = 1 FOR UPDATE").fetchone()
        query = "UPDATE account SET balance = %s WHERE id = 1 AND balance = %s"
        return "ok" if sql.execute(query, [balance - amount, balance]).rowcount else "try again"


def test_an_answer_that_says_no_is_no_loss(trial: Trial) -> None:
    """Without the lock one is told to try again, as in no serial order. The invariant can tell: nothing is lost."""
    law = lambda sql, *said: total(sql) == 100 - 10 * said.count("ok"), "money is lost"
    result = trial([(take_or_try_again, 10)] * 2, setup=accounts, invariant=law)
    assert result.kept
    assert result.notes[0].startswith("without FOR UPDATE, too, no order breaks it")


def total(sql: Any) -> int:
    return int(sql.execute("SELECT sum(balance) FROM account").fetchone()[0])
