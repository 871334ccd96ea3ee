"""Explorations one after the other in one process leave no connection behind, and no connection decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
import redis
from django.db import connections
from redis.backoff import NoBackoff
from redis.retry import Retry

from loadtest.explorer.lanes import Lanes
from loadtest.findings.job import Job
from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.system import words_of
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.search.search import Search
from tests.locks.actor import eventually
from tests.lost_update_lab import bank
from tests.lost_update_lab.conftest import opened

HELD = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
OWN = 3  # this test's, and the lane's own; each lost reply of a job costs one more


def looks_again(own: bank.Bank, amount: int) -> str:
    """After a lost reply it looks what has become of it, over another connection, and is none the wiser."""
    try:
        return bank.no_lock(own, amount)
    except psycopg.OperationalError:
        own.read()
        raise


def no_such_database(own: bank.Bank, amount: int) -> str:
    psycopg.connect(own.database, dbname="nowhere")
    return "ok"


def nobody_listens(own: bank.Bank, amount: int) -> str:
    redis.Redis(port=1, retry=Retry(NoBackoff(), 0)).ping()
    return "ok"


def asks_before_and_after(own: bank.Bank, amount: int) -> str:
    """In between, a server may be replaced by another one: the pool sees that the connection ended, and makes a new
    one."""
    try:
        own.redis.set("before", amount)
        own.read()
        own.redis.set("after", amount)
    except redis.ConnectionError as error:
        raise bank.GaveUp from error
    return bank.select_for_update(own, amount)


@pytest.mark.deep
@pytest.mark.usefixtures("committed_db")
@pytest.mark.parametrize("template", [True, False], ids=["migrated", "empty"])
def test_the_lanes_database_is_migrated_and_this_process_is_not_connected_to_it(
    template: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not template:
        monkeypatch.delenv("INITDB_TEMPLATE")
    with Lanes(1) as lanes, psycopg.connect(lanes._lanes[0].environment["DATABASE_URL"]) as sql:
        assert sql.execute("SELECT count(*) FROM ledger_book").fetchone() == (0,)
        names = sql.execute("SELECT datname FROM pg_stat_activity WHERE datname = 'lab'").fetchall()
    assert (names, "lanes" in connections) == ([], False)


@pytest.mark.deep
@pytest.mark.usefixtures("committed_db")
def test_a_lane_keeps_no_connection_of_the_job_before() -> None:
    """Some twenty jobs were enough to take all the places that the server has."""
    jobs = [Job(strategy=slug, budget=60.0) for slug in ("no-lock", "atomic-update", "no-lock")]
    with Lanes(1) as lanes, psycopg.connect(lanes._lanes[0].environment["DATABASE_URL"]) as sql:
        sql.autocommit = True
        for _, answer in lanes.explore(jobs):
            assert "error" not in answer, answer["error"]
            # a session ends when its process does
            eventually(lambda: sql.execute(HELD).fetchall()[0][0] <= OWN, f"{OWN} connections")


def test_an_answer_that_is_known_keeps_no_connection(
    explore: Callable[..., SearchResult], explorer_urls: tuple[str, str]
) -> None:
    """An error has frames, and these have connections: the recording keeps the error's words alone."""
    with psycopg.connect(explorer_urls[0], autocommit=True) as sql:
        before = sql.execute(HELD).fetchall()[0][0]
        result = explore(looks_again, faults=1)
        assert result.exhausted, result.cause
        # two look on from beside; each worker: the two of one schedule, and the one that it goes on with
        most = before + 2 + 3 * result.bounds.workers
        eventually(lambda: sql.execute(HELD).fetchall()[0][0] <= most, f"{most} connections")


def test_what_a_search_has_learned_keeps_no_connection(explorer_urls: tuple[str, str]) -> None:
    """A lane freezes it, and so no collection frees it: some twenty jobs took all the places that the server has."""
    with opened(explorer_urls, looks_again, faults=1) as harness:
        assert Search(harness).explore().exhausted
        known = harness.recording
        assert known
        assert known._connections
    assert not known._connections


def test_errors_that_name_each_other_as_their_causes_have_an_end() -> None:
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    assert words_of(one) is one


@pytest.mark.parametrize("deposit", [no_such_database, nobody_listens])
def test_a_server_that_takes_no_connection_is_no_answer_of_a_schedule(
    explore: Callable[..., SearchResult], deposit: Callable[..., str]
) -> None:
    result = explore(deposit)
    assert not result.exhausted
    assert "cannot connect" in result.cause
    assert "log" in result.remedy


@contextmanager
def asked_again(own: bank.Bank) -> Iterator[None]:
    """A lock on a connection of its own; its release is sent again, as it was, when that connection is gone."""
    client = redis.Redis(connection_pool=own.redis.connection_pool, single_connection_client=True)
    if not client.set("lock", "held", nx=True):
        raise bank.GaveUp
    yield
    try:
        client.delete("lock")
    except redis.ConnectionError:
        client.delete("lock")


@pytest.mark.deep
def test_a_client_that_resends_after_its_connection_broke_is_followed_to_the_end(
    explore: Callable[..., SearchResult],
) -> None:
    """It has learned something: it is not where it was before, and its schedule is judged."""
    result = explore(bank.locked_by(asked_again), faults=1, kinds=frozenset({Fault.FAILOVER}))
    assert (result.under(Fault.FAILOVER), result.exhausted) == ("lost", True)


@pytest.mark.deep
def test_a_client_about_to_reconnect_gets_no_failover(explore: Callable[..., SearchResult]) -> None:
    kinds = frozenset({Fault.FAILOVER})
    result = explore(asks_before_and_after, faults=1, kinds=kinds)
    assert result.exhausted, result.cause
    assert (result.worst, result.fired) == ("unbroken", {Fault.FAILOVER})
