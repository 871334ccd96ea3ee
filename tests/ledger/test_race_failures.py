"""What each strategy's page says of the day it breaks, made to happen by gates."""

from __future__ import annotations

import pytest
from django.db import transaction
from redis import Redis

from ledger.books import open_book, post
from ledger.models import Account
from ledger.posting import Busy, Line, Posting, Refused
from tests.ledger.race import Killed, Race
from tests.ledger.race.books import assert_lost

pytestmark = pytest.mark.usefixtures("committed_db")


def end_lease(redis: Redis, race: Race, account: str = "A") -> None:
    """What the server does when a lease is over: the key is gone."""
    assert redis.delete(f"{race.book.pk}:{account}") == 1


def test_naive_lock_lets_two_in_between_its_get_and_its_set() -> None:
    with Race("naive-lock") as race:
        a, b = race.worker("A", +10), race.worker("B", +20)
        a.runs_to("redis SET")
        b.runs_to("redis SET")  # both have looked, and seen no lock
        a.runs_to("think")
        b.runs_to("think")
        a.finishes()
        b.finishes()
        assert_lost(race, 10, by="B")


def test_naive_lock_makes_a_latecomer_wait() -> None:
    with Race("naive-lock") as race:
        a, b = race.worker("A", +10).runs_to("think"), race.worker("B", +20).waits()
        a.finishes()
        b.finishes()
        assert race.kept()


def test_setnx_is_locked_for_ever_when_its_holder_dies() -> None:
    with Race("setnx", timeout=0.05) as race:
        a, b = race.worker("A", +10).runs_to("think"), race.worker("B", +20)
        a.dies()
        assert isinstance(a.error, Killed)
        b.fails(Busy)
        assert race.balance() == 100


def test_watchdog_paused_past_its_lease_overwrites_its_successor(redis_client: Redis) -> None:
    with Race("watchdog") as race:
        a, b = race.worker("A", +10).runs_to("think"), race.worker("B", +20)
        end_lease(redis_client, race)  # its renewing thread was paused with it
        b.runs_to("think")
        b.finishes()
        a.finishes()
        assert_lost(race, 20, by="A")


def test_watchdog_overtaken_in_its_release_deletes_its_successors_lock(redis_client: Redis) -> None:
    with Race("watchdog") as race:
        a, b, c = race.worker("A", +10), race.worker("B", +20), race.worker("C", +30)
        a.runs_to("redis DEL")  # it has read its own value, and will delete by name
        end_lease(redis_client, race)
        b.runs_to("think")
        a.finishes()  # B's lock is gone
        c.runs_to("think")
        b.finishes()
        c.finishes()
        assert_lost(race, 20, by="C")


@pytest.mark.parametrize("slug", ["select-for-update", "advisory-lock"])
def test_the_lock_of_a_dead_session_ends_with_it(slug: str) -> None:
    with Race(slug) as race:
        a, b = race.worker("A", +10).runs_to("think"), race.worker("B", +20).waits()
        a.dies()
        b.finishes()
        assert race.balance() == 120
        assert race.kept()


def test_optimistic_version_gives_up_and_has_written_nothing() -> None:
    with Race("optimistic-version", retries=0) as race:
        a, b = race.worker("A", +10).runs_to("think"), race.worker("B", +20)
        b.finishes()
        a.fails(Busy)
        assert race.balance() == 120
        assert race.kept()


def test_the_articles_withdrawals_of_50_and_40_leave_60() -> None:
    with Race("select-for-update-late") as race:
        a, b = race.worker("A", -50).runs_to("think"), race.worker("B", -40).runs_to("think")
        a.finishes()
        b.finishes()
        assert race.balance() == 60
        assert_lost(race, 50, by="B")


def test_a_rename_overwrites_a_deposit_when_all_fields_are_saved() -> None:
    with Race("save-all-fields") as race:
        a, b = race.worker("A", +10), race.worker("B", 0, description="Anna")
        a.runs_to("think")
        b.runs_to("think")
        a.finishes()
        b.finishes()
        assert Account.objects.get(book=race.book, number="A").name == "Anna"
        assert_lost(race, 10, by="B")


def test_a_lock_inside_the_transaction_is_free_before_the_commit() -> None:
    with Race("lock-inside-transaction") as race:
        a, b = race.worker("A", +10), race.worker("B", +20)
        a.runs_to("think")
        b.waits()  # the lock does lock
        a.runs_to("think")  # the rest of the view: unlocked, and not committed
        b.runs_to("think")
        a.finishes()
        b.finishes()
        assert_lost(race, 10, by="B")


def test_a_lock_around_the_transaction_refuses_to_be_inside_another_one() -> None:
    book = open_book("lock-around-transaction", [("A", 100, None)])
    with pytest.raises(RuntimeError, match="durable"), transaction.atomic():
        post(book, Posting("k", (Line("A", 10),)))


def test_a_lock_around_the_transaction_does_not_outlive_its_lease(redis_client: Redis) -> None:
    with Race("lock-around-transaction") as race:
        a, b = race.worker("A", +10).runs_to("think"), race.worker("B", +20)
        end_lease(redis_client, race)
        b.finishes()
        a.finishes()
        assert_lost(race, 20, by="A")


@pytest.mark.parametrize(("slug", "kept"), [("optimistic-value", False), ("optimistic-version", True)])
def test_a_balance_that_goes_away_and_comes_back(slug: str, kept: bool) -> None:
    with Race(slug) as race:
        a, b, c = race.worker("A", +20), race.worker("B", +10), race.worker("C", -10)
        a.runs_to("think")
        b.finishes()
        c.finishes()
        a.finishes()
        books = race.books()
        assert (books.lost_amount, books.drift) == ((0, 0) if kept else (20, 0))


@pytest.mark.parametrize("slug", ["row-lock-nowait", "repeatable-read", "serializable"])
def test_retries_used_up_are_an_answer_and_nothing_is_written(slug: str) -> None:
    with Race(slug, retries=0) as race:
        a, b = race.worker("A", +10).runs_to("think"), race.worker("B", +20)
        late, early = (b, a) if slug == "row-lock-nowait" else (a, b)
        if early is b:
            b.finishes()
        late.fails(Busy)
        if early is a:
            a.finishes()
        assert race.kept()


@pytest.mark.parametrize("slug", ["atomic-update", "select-for-update"])
def test_a_floor_holds_in_a_race(slug: str) -> None:
    with Race(slug, floor=0) as race:
        a, b = race.worker("A", -60).runs_to("think"), race.worker("B", -60)
        b.tries("think")
        a.finishes()
        b.fails(Refused)
        assert race.balance() == 40
        assert race.kept()


def test_a_check_before_the_write_oversells() -> None:
    with Race("no-lock", floor=0) as race:
        a, b = race.worker("A", -60).runs_to("think"), race.worker("B", -60).runs_to("think")
        a.finishes()
        b.finishes()  # 120 of 100 were given away
        assert_lost(race, 60, by="B")


def test_a_check_before_an_atomic_decrement_oversells_and_loses_nothing() -> None:
    with Race("check-then-decrement", floor=0) as race:
        a, b = race.worker("A", -60).runs_to("think"), race.worker("B", -60).runs_to("think")
        a.finishes()
        b.finishes()
        assert race.balance() == -20
        assert race.kept()
