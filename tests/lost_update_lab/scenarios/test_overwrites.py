"""Who overwrote whom: reported where it happened, and only there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lost_update_lab import Result
from lost_update_lab.invariants import never_below
from lost_update_lab.scenarios.overwrites import Did, overwrites
from tests.lost_update_lab.scenarios.shop import one_voucher, redeem
from tests.lost_update_lab.scenarios.test_explore import accounts, both, take_at_once

Trial = Callable[..., Result]


def test_the_later_write_of_a_row(trial: Trial) -> None:
    """Both write the same value: the row's version tells, not its contents."""
    (sentence,) = told(trial(both(redeem), setup=one_voucher))
    assert sentence.count("UPDATE at tests/lost_update_lab/scenarios/shop.py:") == 2
    assert "'s UPDATE" in sentence
    assert "overwrote what" in sentence
    assert "voucher[XMAS]" in sentence
    assert sentence.endswith("uses 1)")


@pytest.mark.deep
def test_a_change_that_counts_on_what_was_read(trial: Trial) -> None:
    takers = [(take_at_once, 40), (take_at_once, 30)]
    (sentence, *_) = told(trial(takers, setup=accounts, invariant=never_below("account.balance")))
    assert "stands on what" in sentence
    assert "balance 50" in sentence


def insert_if_none(key: str, sql: Any) -> bool:
    with sql.transaction():
        if sql.execute("SELECT count(*) FROM redemption").fetchone()[0]:
            return False
        sql.execute("INSERT INTO redemption (code, customer) VALUES (%s, 1)", [key])
    return True


@pytest.mark.deep
def test_a_row_that_was_not_there_when_it_was_looked_for(trial: Trial) -> None:
    result = trial([(insert_if_none, "XMAS"), (insert_if_none, "XMAS")], setup=one_voucher)
    (sentence, *_) = told(result)
    assert "read redemption at" in sentence
    assert sentence.split(",")[0] in str(result)


def told(result: Result) -> tuple[str, ...]:
    assert result.schedule
    return result.schedule.overwrites


def did(who: str, command: str, *written: str) -> Did:
    return Did(who, command, "1", "shop.py:1", frozenset(written))


READ, ANN, BOB = (
    did("Bob", "SELECT a FROM t"),
    did("Ann", "UPDATE t SET a = 1", "t[1]"),
    did("Bob", "UPDATE t SET a = 2", "t[1]"),
)


@pytest.mark.parametrize(
    "steps",
    [
        [ANN, READ, BOB],
        [READ, ANN, READ, BOB],
        [READ, BOB, did("Ann", "SELECT a FROM t"), ANN],  # Ann came after Bob
        [READ, BOB, ANN],
        [did("Bob", "SELECT a FROM t2"), ANN, BOB],  # another table, of a name that begins alike
    ],
)
def test_a_write_after_a_read_of_it_overwrote_nothing(steps: list[Did]) -> None:
    assert overwrites(steps) == ()


def test_a_commit_shows_the_statement_that_wrote_the_row() -> None:
    """And not the one after it, which only has a column of the table's name."""
    sell = "UPDATE show SET seats = 0", "INSERT INTO ticket (show, customer) VALUES (1, 'x')"
    bob, ann = ([did(who, each) for each in sell] for who in ("Bob", "Ann"))
    commits = [did(who, "COMMIT", "show[1]", "ticket[1]") for who in ("Ann", "Bob")]
    (sentence,) = overwrites([did("Bob", "SELECT seats FROM show"), *ann, commits[0], *bob, commits[1]])
    assert sentence.startswith(
        "Bob's UPDATE at shop.py:1 overwrote what Ann's UPDATE at shop.py:1 wrote: show[1]"
    )


@pytest.mark.parametrize(
    "update",
    [
        "UPDATE t SET a = a - 40",
        'UPDATE "t" SET "a" = ("t"."a" - 40) WHERE "t"."id" = 1',  # as Django writes it
        "UPDATE `t` SET `a` = `t`.`a` - 40",
    ],
)
def test_a_change_of_the_present_value_overwrites_nothing(update: str) -> None:
    (sentence,) = overwrites([READ, ANN, did("Bob", update, "t[1]")])
    assert "stands on what Bob had read" in sentence


def test_a_key_of_redis() -> None:
    steps = [
        did("Bob", "GET stock"),
        did("Ann", "SET stock 4", "key stock"),
        did("Bob", "SET stock 3", "key stock"),
    ]
    (sentence,) = overwrites(steps)
    assert sentence.startswith(
        "Bob's SET at shop.py:1 overwrote what Ann's SET at shop.py:1 wrote: key stock"
    )


def test_of_two_rows_of_a_table_each_has_its_own_statement() -> None:
    """A commit shows both. The second one was named for the first row."""
    steps = [
        did("Bob", "SELECT a FROM t WHERE t.id = 1"),
        did("Bob", "SELECT a FROM t WHERE t.id = 2"),
        *(
            Did("Ann", f"UPDATE t SET a = 3 WHERE t.id = {row}", "1", f"ann:{row}", frozenset())
            for row in (1, 2)
        ),
        did("Ann", "COMMIT", "t[1]", "t[2]"),
        *(
            Did("Bob", f"UPDATE t SET a = 4 WHERE t.id = {row}", "1", f"bob:{row}", frozenset())
            for row in (1, 2)
        ),
        did("Bob", "COMMIT", "t[1]", "t[2]"),
    ]
    (sentence,) = overwrites(steps)
    assert sentence.startswith("Bob's UPDATE at bob:1 overwrote what Ann's UPDATE at ann:1 wrote: t[1]")
    again = [*steps[:5], did("Bob", "SELECT a FROM t"), *steps[5:]]
    assert overwrites(again) == ()
