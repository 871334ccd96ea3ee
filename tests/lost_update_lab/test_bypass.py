"""A client that goes around the gates is noticed: the search then says `inconclusive`, and never `kept`."""

from __future__ import annotations

import _thread
import socket
import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
import redis
from django.utils.functional import SimpleLazyObject
from psycopg import pq

from lost_update_lab.harness import Harness
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.servers.postgres import bypass
from tests.lost_update_lab import bank

Explore = Callable[..., SearchResult]


def by_raw_socket(own: bank.Bank, amount: int) -> str:
    """Locks by a client without a gate: the explorer does not see these commands."""
    with socket.socket(socket.AF_UNIX) as wire:
        wire.connect(own.redis_url.removeprefix("unix://").split("?")[0])
        wire.sendall(b"PING\r\n")
        wire.recv(100)
    return bank.select_for_update(own, amount)


def by_libpq(own: bank.Bank, amount: int) -> str:
    """Reads by libpq itself, in a session of its own."""
    raw = pq.PGconn.connect(own.database.encode())
    raw.exec_(b"SELECT balance FROM account")
    raw.finish()
    return bank.select_for_update(own, amount)


def by_a_thread_nobody_knows(own: bank.Bank, amount: int) -> str:
    done = threading.Lock()
    done.acquire()

    def ask() -> None:
        own.admin_redis.get("key")
        done.release()

    _thread.start_new_thread(ask, ())
    done.acquire()
    return bank.select_for_update(own, amount)


def by_a_pipeline(own: bank.Bank, amount: int) -> str:
    with own.sql.pipeline():
        return bank.add(own, amount)


def by_copy(own: bank.Bank, amount: int) -> str:
    with own.sql.cursor() as cursor, cursor.copy("COPY (SELECT balance FROM account) TO STDOUT") as rows:
        list(rows)
    return bank.add(own, amount)


@pytest.mark.parametrize("deposit", [by_a_pipeline, by_copy])
def test_what_has_no_gate_is_named(explore: Explore, deposit: Any) -> None:
    result = explore(deposit)
    assert not result.exhausted
    assert "no gate for psycopg" in result.cause


@pytest.mark.parametrize("deposit", [by_raw_socket, by_libpq, by_a_thread_nobody_knows])
def test_a_client_that_bypasses_the_gates_is_named(explore: Explore, deposit: Any) -> None:
    result = explore(deposit)
    assert not result.exhausted
    assert "past the gates" in result.cause or "belongs to no worker" in result.cause


def test_a_connection_to_another_server_is_ignored(explore: Explore, redis_client: redis.Redis) -> None:
    """A thread that another test has left renews a lock at that test's server."""

    def beside_a_renewal(own: bank.Bank, amount: int) -> str:
        asked = threading.Lock()
        asked.acquire()

        def renew() -> None:
            redis_client.pexpire("lock", 1_000)
            asked.release()

        _thread.start_new_thread(renew, ())
        asked.acquire()
        return bank.select_for_update(own, amount)

    result = explore(beside_a_renewal)
    assert (result.exhausted, result.cause) == (True, "")


def test_a_lazy_object_is_not_asked_what_it_stands_for(harness: Callable[..., Harness]) -> None:
    """The gates look through all objects of the process for connections: a request's user is fetched when asked."""
    fetched: list[int] = []
    lazy = SimpleLazyObject(lambda: fetched.append(1))
    harness(bank.no_lock)
    assert not fetched
    del lazy


@pytest.mark.deep
def test_an_open_session_that_wakes_up_is_noticed(explore: Explore, explorer_urls: tuple[str, str]) -> None:
    """Also if it has the number of one that psycopg had made: a machine gives them out again."""
    with psycopg.connect(explorer_urls[0], autocommit=True):  # hooked: known
        raw = pq.PGconn.connect(explorer_urls[0].encode())
        bypass._numbers.append(raw.backend_pid)

        def by_old_session(own: bank.Bank, amount: int) -> str:
            raw.exec_(b"SELECT 1")
            return bank.select_for_update(own, amount)

        assert "past the gates" in explore(by_old_session).cause
        raw.finish()
    assert explore(bank.select_for_update).cause == ""
