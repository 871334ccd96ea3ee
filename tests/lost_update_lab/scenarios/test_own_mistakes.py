"""A mistake in the explorer's own code ends the search. No operation may take it for an answer of the database."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result
from lost_update_lab.runs import own_mistakes
from lost_update_lab.servers.postgres.server import PostgresServer

Trial = Callable[..., Result]
ASKS = "SELECT 1"


def in_a_thread() -> None:
    with suppress(Exception), psycopg.connect(os.environ["DATABASE_URL"]) as sql:
        sql.execute(ASKS)


def in_a_coroutine() -> None:
    async def asks() -> None:
        with suppress(Exception):
            async with await psycopg.AsyncConnection.connect(os.environ["DATABASE_URL"]) as sql:
                await sql.execute(ASKS)

    asyncio.run(asks())


def asks_wrongly() -> None:
    with suppress(Exception), psycopg.connect(os.environ["DATABASE_URL"]) as sql:
        sql.execute("SELECT nobody_has_this")


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("operation", [in_a_thread, in_a_coroutine])
def test_it_ends_the_search(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, operation: Callable[[], Any]
) -> None:
    """`note` is called after each command that was answered."""
    monkeypatch.setattr(PostgresServer, "note", None)
    with pytest.raises(TypeError, match="'NoneType' object is not callable"):
        trial([operation, operation])
    monkeypatch.setattr(
        own_mistakes, "_KINDS", ()
    )  # the control: the operation goes on, and has taken it for an answer
    assert trial([operation, operation]).kept


def test_an_answer_is_none(trial: Trial) -> None:
    assert trial([asks_wrongly, asks_wrongly]).kept
