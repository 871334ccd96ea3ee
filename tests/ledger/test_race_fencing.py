"""Fencing: what a number is worth when the lock's server gives the lock away, or forgets its counter."""

from __future__ import annotations

from importlib import import_module

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from ledger.models import Account
from ledger.posting import Refused
from ledger.resources import resources
from locks import build
from locks.fenced import FencedLock
from tests.ledger.race import Race
from tests.ledger.race.books import assert_lost

pytestmark = pytest.mark.usefixtures("committed_db")


def name(race: Race) -> str:
    return f"{race.book.pk}:A"


def lose_lease(redis: Redis, race: Race) -> None:
    assert redis.delete(name(race)) == 1


def lose_counter(redis: Redis, race: Race) -> None:
    """A restart without persistence, or a failover to a replica that had seen nothing: lock and counter."""
    redis.delete(name(race), f"{{{name(race)}}}:fence")


@pytest.mark.parametrize("slug", ["fenced", "fenced-at-write", "redis-then-database"])
def test_a_holder_past_its_lease_cannot_write(slug: str, redis_client: Redis) -> None:
    with Race(slug) as race:
        a, b = race.worker("A", +10).runs_to("think"), race.worker("B", +20)
        lose_lease(redis_client, race)
        b.finishes()
        assert a.finishes().retries == 1
        assert race.balance() == 130
        assert race.kept()


def test_the_lock_alone_lets_it_write(redis_client: Redis) -> None:
    with Race("fenced-unchecked") as race:
        a, b = race.worker("A", +10).runs_to("think"), race.worker("B", +20)
        lose_lease(redis_client, race)
        b.finishes()
        a.finishes()
        assert_lost(race, 20, by="A")


@pytest.mark.parametrize("slug", ["fenced", "fenced-at-write"])
@pytest.mark.parametrize("second_first", [False, True])
def test_one_number_handed_out_twice_writes_once(slug: str, second_first: bool, redis_client: Redis) -> None:
    with Race(slug) as race:
        a, b = race.worker("A", +10), race.worker("B", +20)
        a.runs_to("think")
        lose_counter(redis_client, race)
        b.tries("think")  # `fenced` retries with the next number: 1 is registered by A
        if not second_first:
            a.tries("the end")  # it may have to wait for B
        b.finishes()
        a.finishes()
        assert race.balance() == 130
        assert race.kept()


def test_a_number_checked_at_the_write_alone_does_not_protect_what_was_read(redis_client: Redis) -> None:
    with Race("fenced-at-write") as race:
        a, b = race.worker("A", +10).runs_to("think"), race.worker("B", +20)
        lose_lease(redis_client, race)
        b.runs_to("think")  # B holds 2, and has read 100
        a.finishes()  # no newer holder has written: 1 is in order
        b.finishes()  # and so is 2
        assert_lost(race, 10, by="B")


def test_a_registered_number_protects_what_was_read(redis_client: Redis) -> None:
    with Race("fenced") as race:
        a, b = race.worker("A", +10).runs_to("think"), race.worker("B", +20)
        lose_lease(redis_client, race)
        b.runs_to("think")
        a.tries("the end")  # refused: 2 is registered; A waits for the lock
        b.finishes()
        assert a.finishes().retries >= 1
        assert race.kept()


def with_unused_numbers(redis: Redis, race: Race) -> None:
    for _ in range(4):  # four holders that found nothing to write
        with build(FencedLock, name(race), **resources(race.book)):
            pass


def test_a_number_checked_at_the_write_alone_loses_when_the_counter_starts_again(redis_client: Redis) -> None:
    with Race("fenced-at-write") as race:
        with_unused_numbers(redis_client, race)
        a, b = race.worker("A", +10).runs_to("think"), race.worker("B", +20)  # A holds 5
        lose_counter(redis_client, race)
        b.finishes()  # B held 1
        a.finishes()  # 1 < 5: the ledger takes A's for the newer one
        assert_lost(race, 20, by="A")


def test_a_registered_number_keeps_when_the_counter_starts_again(redis_client: Redis) -> None:
    with Race("fenced") as race:
        with_unused_numbers(redis_client, race)
        a, b = race.worker("A", +10).runs_to("think"), race.worker("B", +20)
        lose_counter(redis_client, race)
        assert b.finishes().retries == 1  # 1 is older than A's 5: the lock learns of it, and goes on at 6
        a.finishes()
        assert race.kept()
        assert Account.objects.get(book=race.book, number="A").fence == 7


@pytest.mark.parametrize("first_in_first", [True, False])
def test_redis_then_database_goes_on_without_redis(
    first_in_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = {"redis": Redis(unix_socket_path="/nowhere", retry=Retry(NoBackoff(), 0))}
    monkeypatch.setattr(import_module("ledger.strategies.locked"), "resources", lambda book: away)
    with Race("redis-then-database") as race:
        a, b = race.worker("A", +10).runs_to("think"), race.worker("B", +20).runs_to("think")
        for worker in (a, b) if first_in_first else (b, a):
            worker.finishes()
        assert (race.balance(), race.kept()) == (130, True)


def test_the_gate_turns_late_writers_away(redis_client: Redis) -> None:
    with Race("redis-gate", floor=0) as race:
        race.worker("A", -60).finishes()
        late = race.worker("B", -60)
        assert late.tries("sql UPDATE|sql WITH").value == "done"  # it never asked for the row
        assert "more than what is left" in str(late.error)
        race.worker("C", +50).finishes()  # what is paid in opens the gate again
        race.worker("D", -60).finishes()
        assert (race.balance(), race.kept()) == (30, True)


def test_a_gate_that_forgot_lets_too_many_in_and_the_database_decides(redis_client: Redis) -> None:
    with Race("redis-gate", floor=0) as race:
        a, b = race.worker("A", -60).runs_to("think"), race.worker("B", -60)
        redis_client.delete(f"{name(race)}:gate")
        b.runs_to("think")
        a.finishes()
        assert "would break its floor" in str(b.fails(Exception))
        assert (race.balance(), race.kept()) == (40, True)


def test_a_worker_that_dies_at_the_gate_keeps_its_piece_until_the_gate_expires(redis_client: Redis) -> None:
    with Race("redis-gate", floor=0) as race:
        race.worker("A", -60).runs_to("think").dies()  # it has passed the gate, and writes nothing
        assert "more than what is left" in str(race.worker("B", -60).fails(Refused))
        assert 0 < redis_client.ttl(f"{name(race)}:gate") <= 60
        redis_client.delete(f"{name(race)}:gate")  # the minute is over
        race.worker("C", -60).finishes()
        assert (race.balance(), race.kept()) == (40, True)


def test_a_delivery_is_not_forgotten_by_who_had_read_the_empty_stock(redis_client: Redis) -> None:
    """The gate is asked to believe what was read before the delivery, after the delivery has told it to forget."""
    with Race("redis-gate", floor=0) as race:
        race.worker("all", -100).finishes()
        redis_client.delete(f"{name(race)}:gate")
        early = race.worker("early", -30).runs_to("sql SELECT").runs_to("redis ")  # it has read 0
        race.worker("delivery", +50).finishes()
        early.finishes()
        race.worker("late", -20).finishes()
        assert (race.balance(), race.kept()) == (0, True)
