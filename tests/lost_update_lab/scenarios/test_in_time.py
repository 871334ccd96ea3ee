"""A setup or an invariant that waits for ever is ended in time, with a sentence that says what it waits for."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
import redis

from lost_update_lab import Mistake, Result
from lost_update_lab.runs.in_time import Unending, within
from lost_update_lab.scenarios import commits, mistakes
from lost_update_lab.snapshot import postgres
from tests.lost_update_lab.scenarios.shop import one_voucher, redeem_locked
from tests.lost_update_lab.scenarios.test_explore import both

Trial = Callable[..., Result]
SHORT = 0.5


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mistakes, "SETUP_WITHIN", SHORT)
    monkeypatch.setattr(commits, "ANSWERS_WITHIN", SHORT)
    monkeypatch.setattr(postgres, "PATIENCE", 1)


def in_a_lock() -> None:
    (mutex := threading.Lock()).acquire()
    mutex.acquire()


def in_a_query() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as sql:
        sql.execute("SELECT pg_sleep(3600)")


def in_redis() -> None:
    with redis.Redis.from_url(os.environ["REDIS_URL"]) as keys:
        keys.blpop(["nobody"])


def in_a_socket() -> None:
    ours, _theirs = socket.socketpair()
    ours.recv(1)


WAITS = [
    (in_a_lock, r"it waits for a lock of this process at test_in_time.py:\d+: mutex.acquire\(\)"),
    (in_a_query, r"it waits for an answer of PostgreSQL at test_in_time.py:\d+: sql.execute\("),
    (in_redis, r"it waits for an answer of Redis at test_in_time.py:\d+: keys.blpop\("),
    (in_a_socket, r"it stands at test_in_time.py:\d+: ours.recv\(1\)"),
]


@pytest.mark.parametrize(("waits", "told"), WAITS)
def test_a_setup_that_waits_for_ever(trial: Trial, waits: Callable[[], None], told: str) -> None:
    with pytest.raises(Mistake, match=rf"the setup has not ended after 0 s: {told}.*budget=SECONDS"):
        trial(both(redeem_locked), setup=waits, budget=SHORT)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(("waits", "told"), WAITS)
@pytest.mark.parametrize("kind", ["invariant", "always"])
def test_an_invariant_that_waits_for_ever(
    trial: Trial, kind: str, waits: Callable[[], None], told: str
) -> None:
    with pytest.raises(Mistake, match=rf"the invariant \(waits\) has not answered after 0 s: {told}"):
        trial(both(redeem_locked), setup=one_voucher, **{kind: (waits, "waits")})


@pytest.mark.deep
def test_a_setup_that_waits_for_its_own_lock(trial: Trial) -> None:
    """What its sessions hold does not keep the database from being left as it was."""
    held: list[Any] = []

    def waits_for_itself() -> None:
        one_voucher()
        held.extend(psycopg.connect(os.environ["DATABASE_URL"]) for _ in range(2))
        for connection in held:
            connection.execute("ALTER TABLE voucher ADD COLUMN note text")

    with pytest.raises(Mistake, match=r"it waits for an answer of PostgreSQL at test_in_time.py:\d+: connec"):
        trial(both(redeem_locked), setup=waits_for_itself, budget=SHORT)
    with psycopg.connect(trial.keywords["database"]) as sql:  # type: ignore[attr-defined]
        assert sql.execute("SELECT to_regclass('voucher')").fetchone() == (None,)


@pytest.mark.deep
def test_an_invariant_that_stays_in_a_transaction(trial: Trial) -> None:
    """It has read the table, and the explorer drops it in the end."""
    held: list[Any] = []

    def looks() -> bool:
        if not held:
            held.append(psycopg.connect(os.environ["DATABASE_URL"]))
        return bool(held[0].execute("SELECT count(*) <= 1 FROM redemption").fetchone()[0])

    assert trial(both(redeem_locked), setup=one_voucher, invariant=looks).kept
    held[0].close()


@pytest.mark.deep
def test_an_invariant_that_keeps_a_table_locked(trial: Trial) -> None:
    held: list[Any] = []

    def locks() -> bool:
        held.append(psycopg.connect(os.environ["DATABASE_URL"]))
        held[-1].execute("LOCK TABLE voucher IN SHARE MODE")
        return True

    with pytest.raises(
        Mistake, match=r"a session that is no worker's has locked it\. The remedy: let what has op"
    ):
        trial(both(redeem_locked), setup=one_voucher, invariant=(locks, "locks"))
    for connection in held:
        connection.close()


def test_what_ends_in_time_returns_and_raises() -> None:
    assert within(60, sum, [1, 2]) == 3
    with pytest.raises(ZeroDivisionError):
        within(60, divmod, 1, 0)


def test_beside_the_main_thread() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(within, 60, sum, [1, 2]).result() == 3
        error = pool.submit(within, SHORT, in_a_lock).exception()
        assert isinstance(error, Unending)
        assert "it waits for a lock of this process" in str(error)
        assert pool.submit(within, 60, sum, [1, 2]).result() == 3


def test_a_call_that_computes_for_ever() -> None:
    def computes() -> None:
        until = time.monotonic() + 3600
        while time.monotonic() < until:
            pass

    with pytest.raises(Unending, match=r"it stands at test_in_time.py:\d+"):
        within(SHORT, computes)
