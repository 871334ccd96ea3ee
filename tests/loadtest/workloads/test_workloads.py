"""What the clients of each workload do, and what breaks its law."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from ledger.reconcile import ClientOutcome
from loadtest import workloads
from loadtest.history import calls as history
from loadtest.history.calls import Call
from loadtest.history.journal import Journal
from loadtest.verdict.words import Word


def postings(slug: str, count: int = 200, **options: object) -> list[workloads.Legs | None]:
    accounts = int(options.pop("accounts", 1))  # type: ignore[call-overload]
    workload, chance = workloads.find(slug, accounts, **options), random.Random(1)
    return [workload.posting(chance) for _ in range(count)]


def test_stock_is_deducted_from_a_floor_of_zero() -> None:
    (opening,) = workloads.find("stock", stock=14).openings()
    assert (opening.opening, opening.floor) == (14, 0)
    assert {amount for ((_, amount),) in postings("stock")} == {-1, 1, 2, 3, 4, 5}
    assert {amount for ((_, amount),) in postings("stock", deliveries=0)} == {-1}


def test_transfers_conserve_the_total_and_go_both_ways() -> None:
    seen = postings("transfers")
    assert all(sum(amount for _, amount in legs) == 0 for legs in seen)
    ways = {tuple(account for account, _ in legs) for legs in seen if legs}
    assert len(ways) == 6  # three accounts, each to each
    assert () in seen


def look(seen: int | None, what: str = "", at: float = 0.0) -> Call:
    """What a reader noted."""
    return Call(f"k{at}", (), ClientOutcome.OK, at, at + 1, "reader", look=what, seen=seen)


def test_a_look_is_noted_and_changes_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.invoke("k", [], "reader", look="/accounts/A0001")
    journal.complete("k", ClientOutcome.OK, seen=7)
    journal.close()
    read = history.read(tmp_path)
    assert [(call.look, call.seen) for call in read.calls] == [("/accounts/A0001", 7)]
    assert (read.operations(), read.postings) == ({}, [])
    assert (read.counts()["looks"], read.counts()["ok"]) == (1, 0)


def test_every_look_sees_the_total() -> None:
    workload = workloads.find("transfers", 3, opening=100)
    assert workload.seen({"accounts": [{"balance": 60}, {"balance": 240}]}) == 300
    assert workload.breaches([look(300), look(300)]) == []
    (breach,) = workload.breaches([look(300), look(290)])
    assert breach.word == Word.LOST
    assert "1 of 2 looks" in breach.sentence
    assert "290" in breach.sentence
    assert not workload.doubts([look(300)])
    assert "no reader looked" in workload.doubts([])[0].cause


def test_an_account_never_goes_back() -> None:
    workload = workloads.find("read-mostly", 2)
    forward = [look(3, "/accounts/A1", 1), look(2, "/accounts/A2", 2), look(3, "/accounts/A1", 3)]
    assert workload.breaches(forward) == []
    (breach,) = workload.breaches([*forward, look(2, "/accounts/A1", 4)])
    assert breach.word == Word.LOST
    assert "version 3 and later 2" in breach.sentence


def test_stock_that_nobody_ran_out_of_proves_nothing() -> None:
    workload = workloads.find("stock")
    refused = Call("k", (("A0001", -1),), ClientOutcome.FAIL, 0, 1, "buyer")
    assert workload.doubts([refused]) == []
    assert "floor was never tried" in workload.doubts([replace(refused, busy=True)])[0].cause


def test_read_mostly_reads_its_share() -> None:
    reads = sum(legs == () for legs in postings("read-mostly", 1000, reads=0.9))
    assert 850 < reads < 950


def test_run_once_offers_each_day_once_to_each_scheduler() -> None:
    assert postings("run-once", 4, days=3) == [(("A0001", -1),), (("A0002", -1),), (("A0003", -1),), None]


@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        ("ok fail fail", []),
        ("ok ok fail", [Word.CREATED]),
        ("fail fail", [Word.LOST]),
        ("info fail", []),  # it may have run
    ],
)
def test_a_job_runs_exactly_once(outcomes: str, words: list[Word]) -> None:
    legs = (("A0001", -1),)
    calls = [Call(f"k{n}", legs, ClientOutcome(each), 0, 1, "w") for n, each in enumerate(outcomes.split())]
    breaches = workloads.find("run-once").breaches(calls)
    assert [breach.word for breach in breaches] == words


@pytest.mark.parametrize(
    ("slug", "wrong"),
    [
        ("stock", {"stock": -1}),
        ("stock", {"deliveries": "some"}),
        ("transfers", {"accounts": 1001}),
        ("transfers", {"looks": 2}),
        ("read-mostly", {"reads": -1}),
        ("run-once", {"skew": 61}),
        ("run-once", {"recorded": 1}),
        ("run-once", {"days": 0}),
        ("run-once", {"hours": 3}),
        ("run-once", {"days": 10_001}),
        ("imports", {"lines": 10_001}),  # four such files have to be made and imported
        ("deposits", {"most": 10**19}),  # no BIGINT
        *(("deposits", {name: 1}) for name in ("slug", "self", "workload")),
    ],
)
def test_wrong_options_are_named(slug: str, wrong: dict[str, object]) -> None:
    wrong = {**wrong}
    with pytest.raises(ValueError, match=next(iter(wrong))):
        workloads.find(slug, int(wrong.pop("accounts", 1)), **wrong)  # type: ignore[call-overload]


def test_a_parameter_is_no_option() -> None:
    with pytest.raises(ValueError, match="no option accounts"):
        workloads.find("imports", 1, accounts=5)


def test_without_a_record_nothing_keeps_a_job_from_running_again() -> None:
    assert [each.floor for each in workloads.find("run-once", days=2).openings()] == [0, 0]
    assert [each.floor for each in workloads.find("run-once", days=1, recorded=False).openings()] == [None]


@pytest.mark.deep
def test_schedulers_of_one_process_share_a_clock() -> None:
    first, second = (workloads.find("run-once", day=1, skew=0.5) for _ in range(2))
    for each in (first, second):
        each.posting(random.Random(1))
    assert first.due() == second.due()
    assert 1 <= first.due() <= 1.5
