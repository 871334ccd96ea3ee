"""A command that has no answer when the budget ends is named, and the server is told to let its session go."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lost_update_lab.embedded.mariadb import MariaDB
from lost_update_lab.runs import hang
from lost_update_lab.search.search import SearchResult
from tests.lost_update_lab.mariadb.bank import Bank

Explore = Callable[..., tuple[SearchResult, Bank]]
#: it computes for longer than any test
LONG = "SELECT SUM(a.seq * b.seq) FROM seq_1_to_1000000 a, seq_1_to_1000000 b"
RUNNING = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SUM(a.seq%'"


@pytest.mark.deep
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "while another one has a row"])
def test_a_busy_command_is_let_go(explore: Explore, explored_mariadb: MariaDB, inside: bool) -> None:
    def deposit(bank: Bank, amount: int) -> str:
        if inside:
            bank.ask("BEGIN")
            bank.ask("UPDATE account SET balance = balance WHERE id = %s", amount // 10)
        bank.ask(LONG)
        return "ok"

    result, _ = explore(deposit, budget=6)
    assert "waits for the answer to SELECT SUM(a.seq * b.seq)" in result.cause
    assert (result.remedy, result.words) == (hang.BUSY, {})
    with explored_mariadb.connect() as sql, sql.cursor() as cursor:
        cursor.execute(RUNNING)
        assert cursor.fetchone() == (0,)
