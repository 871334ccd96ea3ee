"""A lane's process: when the budget of its first job begins, and what it leaves behind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from multiprocessing import active_children
from multiprocessing.connection import wait
from time import monotonic
from typing import Any

import psycopg
import pytest
import redis
from django.db import connections, transaction

from loadtest.explorer import lanes
from loadtest.explorer.lanes import STARTS_WITHIN, Lanes, _margin
from loadtest.findings.job import Job
from loadtest.servers import ServerError
from lost_update_lab.runs import hang

BUDGET = 60.0


@pytest.mark.deep
def test_a_budget_begins_when_the_lane_is_ready(django_db_blocker: Any) -> None:
    """Its start was part of the budget. On a slow machine a lane with a MariaDB to migrate was given up before it had
    begun, and so was each one that replaced it."""
    with django_db_blocker.unblock(), Lanes(1) as lanes:
        [lane] = lanes._lanes
        begun = monotonic()
        lane.begin(Job(strategy="no-lock", budget=BUDGET))
        assert lane.until >= begun + STARTS_WITHIN
        assert wait([lane.pipe], STARTS_WITHIN)
        assert lane.became_ready()
        assert lane.until < monotonic() + BUDGET + _margin(BUDGET) + 1
        assert wait([lane.pipe], BUDGET)
        assert not lane.became_ready()
        assert lane.answer()["result"].exhausted


def test_what_does_not_start_leaves_no_process(
    django_db_blocker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(url: str) -> None:
        raise ServerError("migrate failed")

    monkeypatch.setattr(lanes, "_migrate", fails)
    before = set(active_children())
    with django_db_blocker.unblock(), pytest.raises(ServerError, match="migrate failed"):
        Lanes(1).__enter__()
    assert set(active_children()) <= before


@pytest.mark.deep
def test_a_server_that_a_lock_keeps_busy_for_ever_is_begun_anew(django_db_blocker: Any) -> None:
    """The next job had a traceback of it, and its last words at the end, where it did not stop, stood in the place of
    all results."""
    with django_db_blocker.unblock(), Lanes(1) as lanes:
        [lane] = lanes._lanes
        _keep_busy(lane.environment["REDIS_URL"])
        lane.end()
        lane._start_anew()
        with closing(redis.Redis.from_url(lane.environment["REDIS_URL"])) as client:
            assert client.ping()
        _keep_busy(lane.environment["REDIS_URL"])


@contextmanager
def busy_in_postgres(name: str, *, sql: str) -> Iterator[None]:
    """It keeps its table locked, too."""
    with transaction.atomic(using=sql), connections[sql].cursor() as cursor:
        cursor.execute("LOCK TABLE ledger_entry")
        cursor.execute("DO $$ BEGIN LOOP END LOOP; END $$")
    yield


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_a_command_that_postgresql_never_answers_ends_with_the_budget(django_db_blocker: Any) -> None:
    """It was told to take more time. Its session went on computing, and kept its locks from the next job."""
    jobs = [
        Job(strategy=f"{__name__}:busy_in_postgres", budget=10.0),
        Job(strategy="no-lock", faults=0, budget=60.0),
    ]
    with django_db_blocker.unblock(), Lanes(1) as lanes:
        (_, first), (_, second) = lanes.explore(jobs)
        [lane] = lanes._lanes
        with psycopg.connect(lane.admin) as admin:
            there = "SELECT query FROM pg_stat_activity WHERE datname = %s AND query LIKE '%%LOOP%%'"
            assert admin.execute(there, [lane.database]).fetchall() == []
    assert re.match(
        r"the budget of 10 s ended: [AB] waits for the answer to DO \$\$ BEGIN LOOP", first["error"]
    )
    assert first["remedy"] == hang.BUSY
    assert first["trace"]
    assert second["result"].exhausted


def _keep_busy(url: str) -> None:
    with closing(redis.Redis.from_url(url, socket_timeout=0.1)) as client, pytest.raises(redis.TimeoutError):
        client.eval("while true do end", 0)
