"""What the clients of each workload do, and what breaks its law."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ledger.reconcile import Operation, Outcome
from loadtest import history, workloads
from loadtest.journal import Journal
from loadtest.laws import sighting_law
from loadtest.words import Word


def postings(slug: str, count: int = 200, **options: object) -> list[workloads.Legs]:
    accounts = int(options.pop("accounts", 1))  # type: ignore[call-overload]
    workload, chance = workloads.find(slug, accounts, **options), random.Random(1)
    return [workload.posting(chance) for _ in range(count)]


def test_stock_is_deducted_from_a_floor_of_zero() -> None:
    (opening,) = workloads.find("stock", stock=14).openings()
    assert (opening.opening, opening.floor) == (14, 0)
    assert {amount for ((_, amount),) in postings("stock", most=3)} == {-1, -2, -3}


def test_transfers_conserve_the_total_and_go_both_ways() -> None:
    seen = postings("transfers")
    assert all(sum(amount for _, amount in legs) == 0 for legs in seen)
    assert {tuple(account for account, _ in legs) for legs in seen if legs} == {
        ("A0001", "A0002"),
        ("A0002", "A0001"),
    }
    assert () in seen
    in_order = {
        tuple(account for account, _ in legs) for legs in postings("transfers", lines="sorted") if legs
    }
    assert in_order == {("A0001", "A0002")}


def test_a_reader_complains_of_a_total_that_changed(tmp_path: Path) -> None:
    workload = workloads.find("transfers", 2, opening=100)
    assert workload.complaint({"A0001": 60, "A0002": 140}) == ""
    assert workload.complaint({"A0001": 60}) == ""  # not all of them
    said = workload.complaint({"A0001": 60, "A0002": 130})
    assert "190" in said
    journal = Journal(tmp_path)
    journal.invoke("k", [("A0001", 1)], "w")
    journal.saw(said)
    journal.complete("k", Outcome.OK)
    journal.close()
    read = history.read(tmp_path)
    assert (read.sightings, len(read.calls)) == ([said], 1)
    assert [breach.word for breach in sighting_law(read.sightings)] == [Word.LOST]
    assert sighting_law([]) == []


def test_read_mostly_reads_its_share() -> None:
    reads = sum(legs == () for legs in postings("read-mostly", 1000, share=0.9))
    assert 850 < reads < 950


def test_run_once_offers_each_day_once_to_each_scheduler() -> None:
    assert postings("run-once", 4, days=3) == [(("A0001", -1),), (("A0002", -1),), (("A0003", -1),), ()]


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
    seen = [Operation(f"k{n}", -1, Outcome(each), 0, 1) for n, each in enumerate(outcomes.split())]
    breaches = workloads.find("run-once").breaches({"A0001": seen})
    assert [breach.word for breach in breaches] == words


@pytest.mark.parametrize(
    ("slug", "wrong"),
    [
        ("stock", {"stock": 0}),
        ("transfers", {"lines": "any"}),
        ("transfers", {"looks": 1}),
        ("read-mostly", {"share": 1}),
        ("run-once", {"days": 0}),
        ("run-once", {"hours": 3}),
    ],
)
def test_wrong_options_are_named(slug: str, wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        workloads.find(slug, **wrong)
