"""A waiter that is released works on in the server by itself. What counts is where all end up, not the way there."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import psutil
import psycopg
import pytest

from lost_update_lab.runs.found import SearchResult
from lost_update_lab.servers.postgres.server import PostgresServer
from tests.lost_update_lab import bank

TAKE = b"UPDATE account SET version = version + 1, balance = balance + 1 WHERE id = 1 AND version = 0"


class Slow(PostgresServer):
    """Its second session stalls until it has been asked about for the third time."""

    asked = 0
    stopped = 0

    def ask(self, name: bytes, *values: bytes) -> list[tuple[bytes | None, ...]]:
        rows = super().ask(name, *values)
        self.asked += 1
        if self.stopped and self.asked == 3:
            os.kill(self.stopped, signal.SIGCONT)
        return rows


@dataclass(frozen=True)
class Waiting:
    """A task that waits in the server."""

    session: Any


@pytest.fixture
def server(explorer_urls: tuple[str, str]) -> Iterator[Slow]:
    with psycopg.connect(explorer_urls[0]) as connection:
        connection.execute(bank.SCHEMA)
    server = Slow(explorer_urls[0], bank.CONTENTS)
    server.begin()
    yield server
    server.close()


@pytest.fixture
def sessions(explorer_urls: tuple[str, str]) -> Iterator[list[Any]]:
    with ExitStack() as opened:
        made = [psycopg.connect(explorer_urls[0], autocommit=True) for _ in range(3)]
        for session in reversed(made):
            opened.callback(session.close)
        yield made


def test_a_waiter_that_lets_go_of_the_next_one_is_waited_for(server: Slow, sessions: list[Any]) -> None:
    """The first waiter finds another version and updates nothing, so the second one does not wait for it."""
    holder, *waiters = sessions
    holder.pgconn.exec_(b"BEGIN")
    holder.pgconn.exec_(TAKE)
    tasks: list[Any] = [Waiting(session) for session in waiters]
    for session in waiters:
        session.pgconn.send_query(TAKE)
        session.pgconn.flush()
        while not server.is_blocked(session):
            pass
    assert server.freed(tasks) == []

    server.asked, server.stopped = 0, waiters[0].info.backend_pid
    os.kill(server.stopped, signal.SIGSTOP)
    holder.pgconn.exec_(b"COMMIT")
    server.ask_again()
    try:
        assert server.freed(tasks) == tasks
    finally:
        os.kill(server.stopped, signal.SIGCONT)
    for session in waiters:
        assert session.pgconn.get_result().command_tuples == 0
        assert session.pgconn.get_result() is None


def versioned(own: bank.Bank, amount: int) -> str:
    """Optimistic, in a transaction, as the ledger does it; a writer that is too late tries again."""
    while True:
        with own.sql.transaction():
            balance, version = own.sql.execute("SELECT balance, version FROM account WHERE id = 1").fetchone()
            done = own.sql.execute(
                "UPDATE account SET balance = %s, version = version + 1 WHERE id = 1 AND version = %s",
                [balance + amount, version],
            )
            own.sql.execute("UPDATE account SET version = version WHERE id = 2 AND %s = 0", [done.rowcount])
        if done.rowcount:
            return "ok"


@pytest.mark.deep
def test_three_workers_that_wait_for_one_row_end(explore: Callable[..., SearchResult]) -> None:
    result = explore(versioned, workers=3)
    assert (result.exhausted, result.cause, result.worst) == (True, "", "unbroken")


def test_a_waiter_that_is_not_first_stands_still_until_it_is_released(
    server: Slow, sessions: list[Any], explorer_urls: tuple[str, str]
) -> None:
    holder, *waiters = sessions
    holder.pgconn.exec_(b"BEGIN")
    holder.pgconn.exec_(TAKE)
    for session in waiters:
        session.pgconn.send_query(TAKE)
        session.pgconn.flush()
        while not server.is_blocked(session):
            pass
    server.freed([Waiting(session) for session in waiters])  # type: ignore[misc]
    while not _stands_still(waiters[1]):  # the signal is on its way
        pass
    assert not _stands_still(holder)
    assert not _stands_still(waiters[0])

    # the next explorer, after one that was killed there
    PostgresServer(explorer_urls[0], bank.CONTENTS).close()
    while _stands_still(waiters[1]):
        pass


def _stands_still(session: Any) -> bool:
    return psutil.Process(session.info.backend_pid).status() == psutil.STATUS_STOPPED


def test_a_lock_that_outlasts_its_run_is_found(server: Slow) -> None:
    with psycopg.connect(server.admin.info.dsn, autocommit=True) as session:
        session.execute("SELECT pg_advisory_lock(7)")
        server.prove_idle([session])
        with pytest.raises(RuntimeError, match="still hold locks"):
            server.begin()


def test_a_session_that_is_left_inside_is_found_at_once(server: Slow) -> None:
    with psycopg.connect(server.admin.info.dsn) as session:
        session.execute("SELECT 1")
        with pytest.raises(RuntimeError, match="left inside a transaction"):
            server.prove_idle([session])
