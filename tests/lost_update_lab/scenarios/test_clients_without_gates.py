"""A worker's client without a gate is said, and nothing that was seen counts: never `kept`, and never a false alarm."""

from __future__ import annotations

import multiprocessing
import os
import socket
import sqlite3
from collections.abc import Callable, Iterator
from mmap import mmap
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any

import pytest
from psycopg import pq

from lost_update_lab import Mistake, Result
from tests.lost_update_lab.scenarios.shop import one_voucher, redeem_locked

Trial = Callable[..., Result]


def touch(sql: Any) -> str:
    """libpq itself writes, before an operation that is right."""
    raw = pq.PGconn.connect(os.environ["DATABASE_URL"].encode())
    raw.exec_(b"UPDATE voucher SET uses = uses + 1")
    raw.finish()
    return redeem_locked("XMAS", 1, sql)


def only_touch() -> None:
    raw = pq.PGconn.connect(os.environ["DATABASE_URL"].encode())
    raw.exec_(b"UPDATE voucher SET uses = uses + 1")
    raw.finish()


def by_wire(sql: Any) -> str:
    """As a Redis client of another make does."""
    with socket.socket(socket.AF_UNIX) as wire:
        wire.connect(os.environ["REDIS_URL"].removeprefix("unix://").split("?")[0])
        wire.sendall(b"*2\r\n$4\r\nINCR\r\n$5\r\ncount\r\n")
        wire.recv(100)
    return redeem_locked("XMAS", 1, sql)


@pytest.mark.deep
@pytest.mark.parametrize("crashes", [0, 1])
@pytest.mark.parametrize(
    "operation", [pytest.param(touch, marks=pytest.mark.answers_change), only_touch, by_wire]
)
def test_a_client_past_the_gates(trial: Trial, operation: Any, crashes: int) -> None:
    result = trial([operation, operation], setup=one_voucher, crashes=crashes)
    assert (result.verdict, result.schedule) == ("inconclusive", None)
    assert "past the gates" in result.cause
    assert "put a gate before that client" in result.remedy


def test_a_database_in_a_file(trial: Trial, tmp_path: Path) -> None:
    def counts() -> None:
        with sqlite3.connect(tmp_path / "count.db") as ours:
            ours.execute("CREATE TABLE IF NOT EXISTS count (value int)")

    with pytest.raises(
        Mistake, match=r"opens the database in the file .*count.db: workers stand for machines"
    ):
        trial([counts, counts], setup=one_voucher)


@pytest.mark.deep
def test_a_database_in_memory_is_its_own(trial: Trial) -> None:
    def counts(sql: Any) -> str:
        with sqlite3.connect(":memory:") as ours:
            ours.execute("CREATE TABLE count (value int)")
        return redeem_locked("XMAS", 1, sql)

    assert trial([counts, counts], setup=one_voucher, control=False).kept


VALUE, RAW, ARRAY = (
    multiprocessing.Value("i"),
    multiprocessing.Value("i", lock=False),
    multiprocessing.Array("i", 2),
)
PAGES = mmap(-1, 8)
HELD: list[SharedMemory] = []


@pytest.fixture(scope="module", autouse=True)
def shared() -> Iterator[None]:
    HELD.append(SharedMemory(create=True, size=8))
    yield
    HELD[0].close()
    HELD[0].unlink()


def counts_by_value() -> None:
    VALUE.value += 1


def locks_by_value() -> None:
    with VALUE.get_lock():
        pass


def counts_by_array() -> None:
    ARRAY[0] += 1


def counts_in_shared_memory() -> None:
    HELD[0].buf[0] += 1


def looks_for_shared_memory() -> None:
    SharedMemory(HELD[0].name)


def counts_in_pages() -> None:
    PAGES[0] = PAGES[0] + 1


def counts_by_raw_value() -> None:
    RAW.value += 1


@pytest.mark.parametrize(
    "shares",
    [
        counts_by_value,
        locks_by_value,
        counts_by_array,
        counts_in_shared_memory,
        looks_for_shared_memory,
        counts_in_pages,
        counts_by_raw_value,
    ],
)
def test_memory_that_processes_share(trial: Trial, shares: Callable[[], None]) -> None:
    def operation(sql: Any) -> str:
        shares()
        return redeem_locked("XMAS", 1, sql)

    with pytest.raises(
        Mistake, match=r"uses memory that processes share \(.*keep it in the database, or in Redis"
    ):
        trial([operation, operation], setup=one_voucher)


def by_with(lock: Any) -> None:
    with lock:
        pass


def without_waiting(lock: Any) -> None:
    """It never waits, so nothing else would show that it excludes the other worker here."""
    if lock.acquire(block=False):
        lock.release()


@pytest.mark.parametrize("takes", [by_with, without_waiting])
@pytest.mark.parametrize("kind", ["Lock", "RLock", "BoundedSemaphore", "Condition"])
def test_a_lock_that_processes_share(trial: Trial, kind: str, takes: Callable[[Any], None]) -> None:
    lock = getattr(multiprocessing, kind)()

    def operation(sql: Any) -> str:
        takes(lock)
        return redeem_locked("XMAS", 1, sql)

    told = rf"multiprocessing's {kind}\), which protects nothing from another machine.*or in Redis"
    if kind == "Condition" and takes is by_with:
        told = told.replace("Condition", "RLock")  # that of the condition
    with pytest.raises(Mistake, match=told):
        trial([operation, operation], setup=one_voucher)


def test_a_datagram(trial: Trial) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.bind(("127.0.0.1", 0))

        def operation(sql: Any) -> str:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
                ours.sendto(b"one more", here.getsockname())
            return redeem_locked("XMAS", 1, sql)

        with pytest.raises(Mistake, match=r"it talks to 127\.0\.0\.1:"):
            trial([operation, operation], setup=one_voucher)
