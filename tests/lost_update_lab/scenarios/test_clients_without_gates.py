"""A worker's client without a gate is said, and nothing that was seen counts: never `kept`, and never a false alarm."""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Callable
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


@pytest.mark.parametrize("crashes", [0, 1])
@pytest.mark.parametrize("operation", [touch, only_touch, by_wire])
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


def test_a_database_in_memory_is_its_own(trial: Trial) -> None:
    def counts(sql: Any) -> str:
        with sqlite3.connect(":memory:") as ours:
            ours.execute("CREATE TABLE count (value int)")
        return redeem_locked("XMAS", 1, sql)

    assert trial([counts, counts], setup=one_voucher, control=False).kept
