"""A worker that has sent nothing yet comes as late as it likes. What its clock showed then, it showed when it came."""

from __future__ import annotations

import calendar
import datetime
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import redis

from loadtest.servers import Valkey
from lost_update_lab.harness import Harness
from lost_update_lab.model.bounds import Bounds, Fault
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.runs.run import Run
from lost_update_lab.search.search import Search
from lost_update_lab.servers.postgres.server import PostgresServer
from lost_update_lab.servers.redis.server import RedisServer
from tests.lost_update_lab import bank

Explore = Callable[..., SearchResult]


def punctual(own: bank.Bank, amount: int) -> str:
    """Works for a minute; a worker whose first command was late acknowledges what it has not done."""
    asked = time.monotonic()
    own.sql.execute("SELECT 1")
    if time.monotonic() - asked > 1:
        return "ok"
    done = bank.select_for_update(own, amount)
    time.sleep(60)
    return done


@pytest.mark.deep
def test_a_late_start_is_a_late_look_at_the_clock(explore: Explore) -> None:
    result = explore(punctual)
    assert result.exhausted
    assert result.worst == "unbroken"
    assert explore(punctual, faults=1, kinds=frozenset({Fault.PAUSE})).worst == "lost"


@pytest.mark.deep
def test_a_clock_that_was_looked_at_before_the_begin_would_be_noticed(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Run, "begin_to_look", lambda run, task, clock: None)
    assert explore(punctual).worst == "lost"


def test_a_name_made_of_the_time_is_the_same_in_each_run(explore: Explore) -> None:
    """redis-py's own lock is known by a uuid1: it is made in C, past every clock."""

    def named(own: bank.Bank, amount: int) -> str:
        own.redis.set(f"name-{amount}", uuid.uuid1().hex)
        return bank.select_for_update(own, amount)

    assert explore(named).exhausted


@pytest.mark.deep
def test_which_server_has_cut_a_worker_off_is_remembered(explorer_urls: tuple[str, str]) -> None:
    """After the same replies, a worker that lost its second connection acts differently from one that lost its first:
    a recording that only counts takes one for the other."""

    def both(own: bank.Bank, amount: int) -> str:
        if not hasattr(own.own, "second"):
            own.own.second = redis.Redis.from_url(second.url)
        own.redis.incr("first")
        own.own.second.incr("second")
        with suppress(redis.ConnectionError):
            own.redis.incr("first")
            own.own.second.incr("second")
        return bank.select_for_update(own, amount)

    with Valkey() as second:
        system = bank.Bank(both, *explorer_urls)  # makes the tables
        servers: list[Any] = [
            PostgresServer(explorer_urls[0], bank.CONTENTS),
            RedisServer(explorer_urls[1]),
            RedisServer(second.url, "redis-2"),
        ]
        empty = redis.Redis.from_url(second.url)
        reset = system.reset
        system.reset = lambda changed: (reset(changed), empty.flushall())  # type: ignore[method-assign]
        kinds = frozenset({Fault.FAILOVER})
        with Harness(system, servers, Bounds(workers=1, faults=1, kinds=kinds)) as harness:
            result = Search(harness).explore()
        for each in (*servers, system.admin, empty):
            each.close()
    assert not result.cause
    assert result.exhausted


@pytest.mark.deep
def test_every_clock_is_the_virtual_one(explore: Explore) -> None:
    """None of them has moved on by itself, and all by the four seconds that were slept."""

    def look() -> tuple[float, ...]:
        naive, here = datetime.datetime.utcnow(), datetime.datetime.today()
        return (
            time.time(),
            time.perf_counter_ns() / 1e9,
            calendar.timegm(time.gmtime()),
            time.mktime(time.localtime()),
            naive.replace(tzinfo=datetime.UTC).timestamp(),
            here.timestamp(),
        )

    def watch(own: bank.Bank, amount: int) -> str:
        before, there = look(), own.redis.time()
        time.sleep(4)
        passed = [after - was for was, after in zip(before, look(), strict=True)]
        passed += [after - was for was, after in zip(there, own.redis.time(), strict=True)]
        wanted = [4, 4, 4, 4, 4, 4, 4, 0]
        right = [round(each, 3) for each in passed] == wanted
        return bank.select_for_update(own, amount) if right else "ok"

    result = explore(watch, slack=0)
    assert (result.worst, result.exhausted) == ("unbroken", True)


@pytest.mark.deep
def test_a_decision_by_the_current_time_is_open_to_clock_jumps(explore: Explore) -> None:
    """A lease in a row, by the clients' clocks: a client whose clock jumps ahead takes it from its holder."""

    def lease(own: bank.Bank, amount: int) -> str:
        own.read()
        now = datetime.datetime.now(datetime.UTC).timestamp()
        taken = "UPDATE account SET version = %s WHERE id = 2 AND version < %s"
        if not own.sql.execute(taken, [int(now) - 1_900_000_000 + 10, int(now) - 1_900_000_000 + 1]).rowcount:
            raise bank.GaveUp
        return bank.add(own, amount)

    result = explore(lease, faults=1, kinds=frozenset({Fault.CLOCK_JUMP}))
    assert (result.under(None), result.under(Fault.CLOCK_JUMP), result.exhausted) == ("stalled", "lost", True)


@pytest.mark.deep
def test_what_a_lease_has_left_is_virtual_to_the_millisecond(explore: Explore) -> None:
    """A watchdog that extends below 1,000 ms reads 1,000, or 999, as the server's own clock has it."""

    def watch(own: bank.Bank, amount: int) -> str:
        own.redis.set(f"lease-{amount}", "mine", px=5_000)
        time.sleep(4)
        left = own.redis.pttl(f"lease-{amount}"), own.redis.ttl(f"lease-{amount}")
        return bank.select_for_update(own, amount) if left == (1_000, 1) else "ok"

    result = explore(watch)
    assert (result.worst, result.exhausted) == ("unbroken", True)
