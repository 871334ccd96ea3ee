"""What reconcile says of histories small enough to check by hand."""

from __future__ import annotations

import gc
import json

import pytest

from ledger.reconcile import AccountRow, ClientOperation, ClientOutcome, reconcile
from tests.ledger.history import History, at

OK, FAIL, INFO = ClientOutcome.OK, ClientOutcome.FAIL, ClientOutcome.INFO


def test_an_account_that_nobody_touched():
    books = History().books()
    assert books.balanced
    assert (books.opening, books.expected, books.final, books.drift, books.entries) == (100, 100, 100, 0, 0)
    assert books.first_loss is books.last_loss is books.worst_loss is None


def test_a_correct_history_is_one_chain():
    history = History()
    history.write("a", 10)
    history.write("b", -30)
    history.write("c", 5)
    books = history.books()
    assert books.balanced
    assert (books.acknowledged, books.expected, books.final, books.drift) == (-15, 85, 85, 0)
    assert (books.lost_updates, books.lost_amount, books.forks, books.entries) == (0, 0, 0, 3)


def test_the_classic_lost_update_names_who_overwrote_whom():
    history = History()
    lost = history.write("a", 10, None, worker="web-1:4711", read_tick=0)
    by = history.write("b", 20, None, worker="web-2:4712", read_tick=0.25)
    books = history.books()
    assert books.balanced, "a lost update leaves books that balance; the loss is beside the chain"
    assert (books.expected, books.final, books.drift) == (130, 120, -10)
    assert (books.lost_updates, books.lost_amount, books.forks) == (1, 10, 1)
    loss = books.first_loss
    assert loss is not None
    assert (loss.entry, loss.overwritten_by, loss.branches) == (lost, by, 2)
    assert loss.sentence == (
        "web-1:4711 and web-2:4712 both read 100 (at 09:00:00.000 and 09:00:00.000 UTC). "
        "web-1:4711 wrote 110 (+10) at 09:00:00.001. "
        "web-2:4712 wrote 120 (+20) over web-1:4711's 110 at 09:00:00.002: 10 lost."
    )
    assert books.last_loss == books.worst_loss == loss


def test_two_threads_of_one_worker_are_told_apart_by_the_key():
    history = History()
    history.write("a", 10, None, worker="web-1")
    history.write("b", 20, None, worker="web-1")
    loss = history.books().first_loss
    assert loss is not None
    assert "web-1 (key b) wrote 120 (+20) over web-1 (key a)'s 110" in loss.sentence


def test_first_last_and_worst_loss():
    history = History()
    history.write("a", 5, None)
    history.write("b", -900, None)
    history.write("c", 7, None)
    history.write("d", 1, None)
    books = history.books()
    losses = (books.first_loss, books.last_loss, books.worst_loss)
    assert [loss.key for loss in losses if loss] == ["a", "c", "b"]
    assert (books.lost_updates, books.lost_amount, books.forks) == (3, 912, 1)
    assert books.first_loss is not None
    assert books.first_loss.branches == 4
    assert "web-2 wrote -800 (-900) over web-1's 105" in books.first_loss.sentence


def test_losses_of_opposite_sign_never_cancel():
    history = History()
    history.write("a", 10, None)
    history.write("b", -10, None)
    history.write("c", 1, None)
    books = history.books()
    assert (books.drift, books.lost_amount, books.lost_updates) == (0, 20, 2)


def test_an_aba_loss_has_an_amount_and_no_drift():
    """+10 and −10 bring 100 back; a writer that compares balances sees nothing, and its write erases both."""
    history = History()
    history.write("a", 10, None)
    history.write("b", -10, "a")
    history.write("c", 5, None, read_tick=0)
    books = history.books()
    assert (books.final, books.expected, books.drift) == (105, 105, 0)
    assert (books.lost_amount, books.lost_updates) == (20, 2)
    assert {books.first_loss.overwritten_by.key, books.last_loss.overwritten_by.key} == {"c"}


def test_a_rename_that_moves_no_money_can_be_the_overwriter_and_the_lost_one():
    history = History()
    history.write("deposit", 10, None)
    history.write("rename", 0, None)
    books = history.books()
    assert (books.lost_amount, books.drift, books.first_loss.overwritten_by.key) == (10, -10, "rename")
    other = History()
    other.write("rename", 0, None)
    other.write("deposit", 10, None)
    assert (other.books().lost_amount, other.books().lost_updates) == (0, 1)


def test_the_overwriter_is_the_one_that_wrote_after_and_not_merely_the_sibling():
    """A wrote, B overwrote A, D had read A's balance and overwrote B: the chain is A, D. A is innocent."""
    history = History()
    history.write("a", 10, None, read_tick=0)
    history.write("b", 20, None, read_tick=0)
    history.write("d", 5, "a", read_tick=1.5)
    books = history.books()
    assert (books.lost_updates, books.lost_amount) == (1, 20)
    loss = books.worst_loss
    assert loss is not None
    assert loss.overwritten_by is not None
    assert (loss.key, loss.overwritten_by.key) == ("b", "d")
    assert "web-3 had read 110" in loss.sentence
    assert loss.sentence.endswith("wrote 115 (+5) over web-2's 120 at 09:00:00.003: 20 lost.")


def test_the_stores_order_decides_when_the_clocks_disagree():
    history = History()
    lost = history.write("a", 10, None)
    history.write("b", 20, None)
    history.write("c", 1)
    numbered = [row._replace(seq=seq) for seq, row in enumerate(history.entries, 1)]
    history.entries = [numbered[0]._replace(written_at=at(5000)), *numbered[1:]]  # its clock is 5 s ahead
    assert lost.key == "a"
    loss = history.books().first_loss
    assert loss is not None
    assert loss.overwritten_by is not None
    assert loss.overwritten_by.key == "b"


def test_a_whole_branch_is_lost():
    history = History()
    history.write("a", 10, None)
    history.write("b", 10)
    history.write("c", 10)
    history.write("late", 1, None, read_tick=0)
    books = history.books()
    assert (books.lost_updates, books.lost_amount, books.forks) == (3, 30, 1)
    first, last = books.first_loss, books.last_loss
    assert [loss.overwritten_by.key for loss in (first, last)] == ["late", "late"]
    assert "web-4 wrote 101 (+1) as if web-1's 110 were not there" in first.sentence, "130 was there by then"
    assert "web-4 wrote 101 (+1) over web-3's 130" in last.sentence


def test_what_the_clients_saw_decides():
    history = History()
    history.write("ok", 10, outcome=OK)
    history.write("info-on", 7, outcome=INFO)
    history.told("info-gone", 1000, INFO)
    history.told("refused", 1000, FAIL)
    history.write("unreported", 3)
    books = history.books()
    assert books.balanced
    assert (books.acknowledged, books.acknowledged_operations) == (10, 1)
    assert (books.indeterminate, books.indeterminate_operations, books.unreported) == (10, 2, 1)
    assert (books.expected, books.final, books.drift, books.lost_updates, books.created_updates) == (
        120,
        120,
        0,
        0,
        0,
    )


def test_an_overwritten_operation_of_unknown_outcome_is_no_loss():
    history = History()
    history.write("maybe", 10, None, outcome=INFO)
    history.write("ok", 20, None, outcome=OK)
    books = history.books()
    assert (books.lost_updates, books.indeterminate, books.drift, books.forks) == (0, 0, 0, 1)


def test_an_acknowledged_operation_without_an_entry_is_lost_without_trace():
    history = History()
    history.write("here", 10, outcome=OK)
    history.told("forgotten", 25, OK)
    books = history.books()
    assert books.balanced
    assert (books.lost_updates, books.lost_amount, books.lost_without_trace, books.drift) == (1, 25, 1, -25)
    loss = books.worst_loss
    assert loss is not None
    assert (loss.entry, loss.overwritten_by, loss.at) == (None, None, 1.0)
    assert "client-forgotten was told that operation forgotten (+25) was done" in loss.sentence


@pytest.mark.parametrize(
    ("when", "amount", "first", "last", "worst"),
    [
        (-5, 25, "gone", "a", "gone"),
        (5, 25, "a", "gone", "gone"),
        (5, 10, "a", "gone", "a"),
        (5, 1, "a", "gone", "a"),
    ],
)
def test_losses_with_and_without_a_trace_are_compared(
    when: float, amount: int, first: str, last: str, worst: str
):
    """What left an entry is ranked by the store's order, what left none by the clients' clock."""
    history = History()
    history.write("a", 10, None, outcome=OK)
    history.write("b", 5, None, outcome=OK)
    ended = history.entries[0].written_at.timestamp() + when
    history.operations.append(ClientOperation("gone", amount, OK, ended - 1, ended, "client"))
    books = history.books()
    losses = (books.first_loss, books.last_loss, books.worst_loss)
    assert [loss.key for loss in losses] == [first, last, worst]


def test_only_the_first_few_creations_are_listed():
    history = History()
    for _ in range(20):
        history.write("a", 1, outcome=OK)
    books = history.books()
    assert (books.created_updates, len(books.created)) == (19, 10)


def test_a_client_that_tried_again_counts_once_with_its_strongest_outcome():
    history = History()
    history.told("a", 10, INFO)
    history.told("a", 10, FAIL)
    history.write("a", 10, outcome=OK)
    history.told("a", 10, INFO)
    books = history.books()
    assert (books.acknowledged_operations, books.acknowledged, books.indeterminate) == (1, 10, 0)
    assert (books.created_updates, books.drift) == (0, 0)


def test_a_lost_first_try_whose_second_try_stands_is_no_loss():
    history = History()
    history.write("a", 10, None)
    history.write("b", 5, None)
    history.write("a", 10, outcome=OK)
    history.told("b", 5, OK)
    assert (history.books().lost_updates, history.books().created_updates, history.books().drift) == (0, 0, 0)


def test_an_operation_twice_on_the_chain_is_created_money():
    history = History()
    history.write("a", -10, outcome=OK)
    history.write("a", -10)
    books = history.books()
    assert (books.created_amount, books.created_updates, books.drift) == (10, 1, -10)
    assert books.created[0] == (
        f"web-2 wrote entry {history.entries[1].id} (-10): operation a is on the chain twice, "
        f"as entry {history.entries[0].id} too"
    )


def test_a_refused_operation_on_the_chain_is_created_money():
    history = History()
    history.write("a", 10, outcome=FAIL)
    books = history.books()
    assert (books.created_amount, books.created_updates, books.acknowledged, books.drift) == (10, 1, 0, 10)
    assert "operation a was refused, and yet it is on the chain" in books.created[0]


def test_an_entry_with_another_amount_than_was_asked_is_a_problem():
    history = History()
    history.write("a", 10)
    history.told("a", 11, OK)
    books = history.books()
    assert not books.balanced
    assert "asked for +11" in books.problems[0]


def test_a_balance_that_changed_without_an_entry_is_a_problem():
    history = History()
    history.write("a", 10)
    books = reconcile(history.account._replace(balance=111), history.entries)
    assert not books.balanced
    assert any("make 110, but the balance is 111" in problem for problem in books.problems)
    assert (books.drift, books.lost_updates) == (1, 0)


def test_an_entry_that_does_not_add_up_is_a_problem():
    history = History()
    row = history.write("a", 10)
    history.entries[0] = row._replace(amount=11)
    assert "100 +11 is not 110" in history.books().problems[0]


def test_an_entry_that_read_another_balance_than_its_parent_wrote_is_a_problem():
    history = History()
    history.write("a", 10)
    row = history.write("b", 10)
    history.entries[1] = history.head = row._replace(balance_before=100, balance_after=110)
    books = history.books()
    assert any("read 100, but entry" in problem for problem in books.problems)
    assert not books.balanced


def test_a_first_entry_that_did_not_read_the_opening_is_a_problem():
    history = History()
    history.write("a", 10)
    books = reconcile(history.account._replace(opening=90), history.entries)
    assert any("but the opening balance is 90" in problem for problem in books.problems)


def test_a_head_without_an_entry_is_a_broken_chain_and_accuses_nobody():
    history = History()
    history.write("a", 10)
    history.write("b", 10)
    gone = history.entries.pop()
    books = history.books()
    assert not books.balanced
    assert f"account A1 has as its head {gone.id}, which is not in the books" in books.problems[0]
    assert (books.lost_updates, books.undecided) == (0, 1)


def test_a_hole_in_the_chain_is_reported_and_what_branches_off_above_it_is_still_lost():
    history = History()
    history.write("a", 10)
    history.write("hole", 10)
    history.write("c", 10)
    history.write("lost", 1, "c")
    history.write("lost too", 2, "hole")
    history.write("e", 1, "c")
    del history.entries[1]
    books = history.books()
    assert not books.balanced
    assert "names as its parent" in books.problems[0]
    assert (books.lost_updates, books.lost_amount, books.undecided) == (2, 3, 1)


def test_beyond_a_break_the_clients_operations_are_undecided_too():
    history = History()
    history.write("ok", 10, outcome=OK)
    history.write("maybe", 10, outcome=INFO)
    history.write("hole", 10, outcome=OK)
    history.write("top", 10, outcome=OK)
    history.told("gone", 5, OK)
    del history.entries[2]
    books = history.books()
    assert (books.undecided, books.acknowledged) == (1, 35), "of the acknowledged ones only `ok` is undecided"
    assert (books.lost_updates, books.lost_without_trace) == (2, 2), "the hole and `gone` have no entry"
    assert books.missing == {"hole", "gone"}


def test_a_cycle_ends_and_is_reported():
    history = History()
    history.write("a", 10)
    last = history.write("b", 10)
    history.entries[0] = history.entries[0]._replace(parent=last.id)
    books = history.books()
    assert not books.balanced
    assert any("cycle" in problem for problem in books.problems)


def test_a_cycle_beside_the_chain_ends_too():
    history = History()
    history.write("a", 10, None)
    history.write("b", 10, "a")
    history.entries[0] = history.entries[0]._replace(parent=history.entries[1].id)
    history.write("c", 1, None)
    books = history.books()
    assert books.lost_updates == 2
    assert books.first_loss is not None
    assert books.first_loss.overwritten_by is None


def test_an_id_twice_is_a_problem():
    history = History()
    row = history.write("a", 10)
    history.entries.append(row._replace(key="b"))
    assert "appears twice" in history.books().problems[0]


def test_a_store_that_went_back_to_an_older_state():
    """A failover: the entries are in the log, the account is not: no writer overwrote them."""
    history = History()
    first = history.write("a", 10)
    history.write("b", 20)
    books = reconcile(AccountRow("A1", 100, 110, 1, first.id), history.entries)
    assert (books.lost_updates, books.lost_amount) == (1, 20)
    assert books.first_loss is not None
    assert books.first_loss.overwritten_by is None
    assert "went back to an older state" in books.first_loss.sentence
    empty = reconcile(AccountRow("A1", 100, 100, 0, None), history.entries)
    assert (empty.lost_updates, empty.lost_amount, empty.balanced) == (2, 30, True)
    assert empty.first_loss is not None
    assert "with no head" in empty.first_loss.sentence


def test_a_lost_entry_whose_parent_is_gone_says_so():
    history = History()
    history.write("gone", 10, None)
    history.write("b", 20)
    history.write("c", 1, None)
    del history.entries[0]
    loss = history.books().first_loss
    assert loss is not None
    assert "which is not in the books. 20 lost." in loss.sentence


def test_the_garbage_collector_is_on_again_even_if_the_store_fails():
    def breaking():
        assert not gc.isenabled()
        yield from ()
        raise OSError("the server went away")

    with pytest.raises(OSError, match="went away"):
        reconcile(History().account, breaking())
    assert gc.isenabled()


def test_many_problems_are_counted_and_the_first_ones_listed():
    history = History()
    for number in range(50):
        history.write(str(number), 1)
        history.entries[-1] = history.entries[-1]._replace(amount=2)
    books = history.books()
    assert books.problem_count == 51
    assert len(books.problems) == 10


def test_right_means_balanced_and_nothing_lost_or_created():
    def right(history: History) -> bool:
        return history.books().right

    history = History()
    history.write("a", 10, outcome=OK)
    assert right(history)
    history.told("gone", 0, OK)
    assert not right(history), "lost, though it moved no money"
    again = History()
    again.write("a", 0, outcome=FAIL)
    assert not right(again), "created, though it moved no money"
    wrong = History()
    wrong.write("a", 0)
    wrong.entries[0] = wrong.entries[0]._replace(amount=1)
    assert not right(wrong)


def test_as_json_is_json_with_integers_and_iso_times():
    history = History()
    history.write("a", 10, None, outcome=OK)
    history.write("b", 20, None, outcome=OK)
    told = json.loads(json.dumps(history.books().as_json()))
    assert told["account"] == "A1"
    assert (told["opening"], told["acknowledged"], told["indeterminate"]) == (100, 30, 0)
    assert (told["expected"], told["final"], told["drift"]) == (130, 120, -10)
    assert (told["lost_amount"], told["lost_updates"], told["created_amount"]) == (10, 1, 0)
    assert told["balanced"] is True
    assert told["first_loss"]["lost"]["written_at"] == "2026-01-02T09:00:00.001000+00:00"
    assert told["first_loss"]["overwritten_by"]["balance_before"] == 100
    assert told["first_loss"]["lost"]["parent"] is None


@pytest.mark.parametrize("order", [1, -1])
def test_the_order_of_the_rows_does_not_matter(order: int):
    history = History()
    for number in range(20):
        history.write(str(number), number, None if number % 7 == 3 else "head", read_tick=0)
    straight = history.books()
    history.entries = history.entries[::order]
    assert history.books() == straight


def test_the_clearest_loss_is_of_two_writers_who_read_the_same_head_close_together():
    """The first in time may be overwritten by a writer that read long ago, which is hard to see at a glance."""
    history = History()
    history.write("a", 1, None)
    history.write("b", 2, "a")
    history.write("c", 4, "b")
    late = history.write("late", 8, None)  # as if a, b and c were not there
    close = history.write("close", 16, "late")
    by = history.write("by", 32, "late")
    books = history.books()
    assert books.first_loss is not None
    assert books.first_loss.key == "a"
    loss = books.clearest_loss
    assert loss is not None
    assert (loss.entry, loss.overwritten_by) == (close, by)
    assert late.id == loss.entry.parent
    assert books.as_json()["clearest_loss"]["key"] == "close"


def test_without_such_a_pair_the_first_loss_is_shown():
    history = History()
    history.write("a", 10, None)
    history.write("b", 20, "a")
    history.head = history.named("a")  # the store went back
    books = history.books()
    assert books.clearest_loss == books.first_loss is not None
