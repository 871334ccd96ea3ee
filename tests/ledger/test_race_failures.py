"""What each strategy's page says of the day it breaks, made to happen by gates."""

from __future__ import annotations

import pytest
from redis import Redis

from ledger.posting import Busy
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


@pytest.mark.parametrize("slug", ["select-for-update"])
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
