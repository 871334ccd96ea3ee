"""Sums over accounts, and postings of several accounts that were torn."""

from __future__ import annotations

import json

from ledger.reconcile import ClientOperation, ClientOutcome, Leg, reconcile_book
from tests.ledger.history import History

OK, FAIL, INFO = ClientOutcome.OK, ClientOutcome.FAIL, ClientOutcome.INFO


def book(*histories: History, operations: dict[str, list[ClientOperation]] | None = None):
    rows = ((each.account, iter(each.entries)) for each in histories)
    told = {each.number: each.operations for each in histories if each.operations}
    return reconcile_book(rows, told if operations is None else operations)


def test_an_empty_book():
    books = book()
    assert books.balanced
    assert (books.opening, books.worst_account, books.torn) == (0, None, 0)


def test_sums_and_the_worst_account():
    good, bad, worse = History(number="good"), History(number="bad"), History(number="worse", opening=0)
    good.write("g", 10)
    bad.write("b1", 5, None)
    bad.write("b2", 5, None)
    worse.write("w1", -500, None)
    worse.write("w2", 1, None)
    books = book(good, bad, worse)
    assert (books.opening, books.acknowledged, books.expected, books.final) == (200, -479, -279, 216)
    assert (books.lost_amount, books.lost_updates, books.forks, books.entries, books.drift) == (
        505,
        2,
        2,
        5,
        495,
    )
    assert books.worst_account is not None
    assert books.worst_account.number == "worse"
    assert books.worst_loss is not None
    assert (books.worst_loss.account, books.worst_loss.key) == ("worse", "w1")
    told = json.loads(json.dumps(books.as_json()))
    assert (told["worst_account"], told["worst_torn"], len(told["accounts"])) == ("worse", None, 3)
    assert json.loads(json.dumps(book(good).as_json()))["worst_account"] is None


def test_drifts_of_two_accounts_cancel_and_losses_do_not():
    plus, minus = History(number="plus"), History(number="minus")
    plus.write("p", 10, None)
    plus.write("x", 0, None)
    minus.write("m", -10, None)
    minus.write("y", 0, None)
    books = book(plus, minus)
    assert (books.drift, books.lost_amount) == (0, 20)


def transfer(key: str, source: History, target: History, amount: int, outcome: ClientOutcome = OK) -> None:
    source.write(key, -amount, outcome=outcome)
    target.write(key, amount, outcome=outcome)


def test_whole_transfers_are_not_torn():
    a, b = History(number="A"), History(number="B")
    transfer("t1", a, b, 10)
    transfer("t2", b, a, 30)
    books = book(a, b)
    assert (books.torn, books.lost_updates, books.final, books.right) == (0, 0, 200, True)


def test_a_transfer_overwritten_on_one_side_is_torn():
    a, b = History(number="A"), History(number="B")
    transfer("t1", a, b, 10)
    b.write("d", 1, None, outcome=OK)
    books = book(a, b)
    assert (books.lost_updates, books.torn, books.torn_amount) == (1, 1, 10)
    assert books.worst_torn is not None
    assert books.worst_torn.sentence == (
        "posting t1 is on the chain of A (-10) but not on that of B (+10): 10 destroyed."
    )


def test_a_torn_transfer_of_unknown_outcome_is_found_although_no_account_lost_anything():
    a, b = History(number="A"), History(number="B")
    b.write("t1", 10, outcome=INFO)
    a.told("t1", -10, INFO)
    books = book(a, b)
    assert (books.lost_updates, books.created_updates, books.balanced) == (0, 0, True)
    assert (books.torn, books.torn_amount, books.right) == (1, 10, False)
    assert books.worst_torn is not None
    assert books.worst_torn.sentence.endswith("10 made from nothing.")


def test_a_transfer_that_was_lost_on_both_sides_is_lost_and_not_torn():
    a, b = History(number="A"), History(number="B")
    transfer("t1", a, b, 10)
    a.write("x", 1, None, outcome=OK)
    b.write("y", 1, None, outcome=OK)
    books = book(a, b)
    assert (books.lost_updates, books.torn) == (2, 0)


def test_without_operations_the_legs_come_from_the_caller():
    a, b = History(number="A"), History(number="B")
    a.write("t1", -10)
    b.write("t1", 10)
    b.write("d", 1, None)
    asked: list[str] = []

    def find_legs(keys):
        asked.extend(keys)
        return [Leg("t1", "A", -10), Leg("t1", "B", 10)]

    books = reconcile_book([(a.account, a.entries), (b.account, b.entries)], find_legs=find_legs)
    assert asked == ["t1"], "only the postings that are off some chain are looked up"
    assert (books.torn, books.torn_amount) == (1, 10)


def test_an_account_that_the_store_forgot():
    a = History(number="A")
    a.write("a", 10, outcome=OK)
    books = book(a, operations={"A": a.operations, "B": [ClientOperation("b", 7, OK, 0, 1, "client")]})
    assert (books.lost_updates, books.lost_amount, books.lost_without_trace) == (1, 7, 1)
    assert (books.balanced, books.problem_count) == (False, 1)
    assert "account B is not in the store" in books.problems[0]


def test_money_on_an_account_that_nobody_named_is_created():
    a, b = History(number="A"), History(number="B")
    a.write("k", 10, outcome=OK)
    b.write("k", 10)  # it was not requested there
    b.write("z", 5, outcome=OK)
    books = book(a, b)
    assert (books.right, books.created_updates, books.created_amount, books.unreported) == (False, 1, 10, 0)
    assert "operation k does not name account B, and yet it is on its chain" in books.created[0]
    assert (books.acknowledged, books.drift) == (15, 10)


def test_an_account_without_operations_is_judged_by_those_of_the_book():
    a, b = History(number="A"), History(number="B")
    a.write("k", 10, outcome=OK)
    b.write("k", 10)
    books = book(a, b)
    assert (books.right, books.created_updates, books.acknowledged_operations) == (False, 1, 1)
    b.entries.clear()
    b.head = None
    b.write("other", 7)
    books = book(a, b)
    assert (books.right, books.unreported, books.acknowledged, books.indeterminate) == (True, 1, 10, 7)


def test_without_any_operation_each_entry_counts():
    a = History(number="A")
    a.write("k", 10)
    books = book(a, operations={"A": []})
    assert (books.acknowledged, books.unreported, books.right) == (10, 0, True)
