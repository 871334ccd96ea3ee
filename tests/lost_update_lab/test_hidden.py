"""What looks like a read and writes; a clock that jumps while its reader sleeps: both are found."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from lost_update_lab.model.bounds import Fault
from lost_update_lab.search.search import SearchResult
from tests.lost_update_lab import bank, conftest

Explore = Callable[..., SearchResult]


def waits_for_a_table(own: bank.Bank, amount: int) -> str:
    """A reads, makes a table, and then adds; B waits for the table."""
    if amount == 10:
        own.read()
        own.sql.execute("SELECT 1 AS begun INTO ready")
    else:
        while not own.sql.execute("SELECT 1 FROM pg_class WHERE relname = 'ready'").fetchone():
            time.sleep(1)
    own.sql.execute("UPDATE account SET balance = balance + %s WHERE id = 1", [amount])
    return "ok"


def test_a_select_that_makes_a_table_is_a_write(explore: Explore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash before it leaves B waiting for ever, a crash after it does not: these are two states."""
    monkeypatch.setattr(bank.Bank, "opening", f"{bank.RESET}; DROP TABLE IF EXISTS ready")
    monkeypatch.setattr(
        conftest, "CONTENTS", "SELECT id, balance, to_regclass('ready') IS NULL FROM account ORDER BY id"
    )
    result = explore(waits_for_a_table, faults=1, kinds=frozenset({Fault.CRASH}))
    assert (result.worst, result.exhausted, result.cause) == ("stalled", True, "")


def gives_up_by_the_wall_clock(own: bank.Bank, amount: int) -> str:
    """Between its two looks it only sleeps."""
    begun = time.time()
    time.sleep(1)
    if abs(time.time() - begun) > 30:
        raise bank.GaveUp
    own.sql.execute("UPDATE account SET balance = balance + %s WHERE id = 1", [amount])
    return "ok"


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("reduction", ["full", "none"])
def test_a_clock_jumps_while_its_reader_sleeps(explore: Explore, reduction: str) -> None:
    kinds: Any = frozenset({Fault.CLOCK_JUMP})
    assert explore(gives_up_by_the_wall_clock, reduction=reduction).worst == "unbroken"
    result = explore(gives_up_by_the_wall_clock, faults=1, kinds=kinds, reduction=reduction)
    assert (result.worst, result.exhausted, result.cause) == ("stalled", True, "")
