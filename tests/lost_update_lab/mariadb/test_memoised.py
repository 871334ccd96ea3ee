"""Memoised MariaDB: what is left out of a search changes nothing, and what an answer depends on is not forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lost_update_lab.embedded.mariadb import MariaDB
from lost_update_lab.search import search
from lost_update_lab.search.search import SearchResult
from lost_update_lab.servers.mariadb.way import MariadbWay, unseen
from lost_update_lab.snapshot.mariadb import MariaDBSnapshot
from tests.lost_update_lab.mariadb import bank
from tests.lost_update_lab.mariadb.bank import Bank

Explore = Callable[..., tuple[SearchResult, Bank]]
CASES: dict[str, Any] = {
    "REPEATABLE READ": bank.repeatable_read,
    "behind its snapshot": bank.behind_its_snapshot,
    "a row, for two seconds": bank.impatient,
    "a name": bank.named_lock,
    "READ COMMITTED": bank.read_committed,
    "who commits by itself once it is released": bank.lock_row,
}


def _found(explore: Explore, deposit: Any, **bounds: Any) -> tuple[Any, ...]:
    found, system = explore(deposit, faults=int(deposit is not bank.lock_row), **bounds)
    words = {key for key, count in found.counts.items() if count}
    return found.cause, found.exhausted, found.schedules, found.states, words, system.errors


@pytest.mark.deep
@pytest.mark.parametrize("name", CASES)
def test_what_is_left_out_of_a_search_changes_nothing(
    explore: Explore, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One in three schedules that were computed in memory is executed too."""
    monkeypatch.setattr(search, "LOOK_EVERY", 3)
    by_real_code = _found(explore, CASES[name], in_memory=False, recorded=False)
    assert _found(explore, CASES[name]) == by_real_code
    assert by_real_code[:2] == ("", True)


@pytest.mark.deep
@pytest.mark.answers_change
@pytest.mark.parametrize("deposit", [bank.read_committed, bank.behind_its_snapshot])
def test_forgetting_how_transactions_came_there_would_be_noticed(
    explore: Explore, deposit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = _found(explore, deposit)
    monkeypatch.setattr(MariadbWay, "place", lambda way, found, strict: found)
    assert _found(explore, deposit) != right


@pytest.fixture
def a_sequence(explored_mariadb: MariaDB) -> Iterator[None]:
    with explored_mariadb.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE SEQUENCE numbers")
        cursor.execute("CREATE TABLE numbered (id BIGINT DEFAULT NEXTVAL(numbers) PRIMARY KEY)")
        yield
        cursor.execute("DROP TABLE numbered")
        cursor.execute("DROP SEQUENCE numbers")


def draws_a_number(system: Bank, amount: int) -> str:
    [(number,)] = system.ask("INSERT INTO numbered VALUES () RETURNING id")
    system.write(system.read() + number)
    return "ok"


@pytest.mark.deep
@pytest.mark.answers_change
@pytest.mark.usefixtures("a_sequence")
def test_a_sequence_begins_again_with_each_schedule(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise no state would come again, and no reply would be known."""
    found, system = explore(draws_a_number)
    assert (found.cause, found.exhausted) == ("", True)
    assert {left for left, _ in system.outcomes} == {100 + 1 + 2, 100 + 1, 100 + 2}
    plain = MariaDBSnapshot.restore
    monkeypatch.setattr(
        MariaDBSnapshot, "restore", lambda snapshot, written: plain(snapshot, {*written} - {"numbers"})
    )
    again, _ = explore(draws_a_number)
    assert again.states > found.states or again.cause


@pytest.mark.parametrize(
    ("text", "is_unseen"),
    [
        ("CREATE TABLE t (id INT)", True),
        ("CREATE TEMPORARY TABLE t (id INT)", False),
        ("CALL p()", True),
        ("INSERT INTO t VALUES (UUID())", True),
        ("UPDATE t SET id = 1", False),
    ],
)
def test_what_no_look_shows(text: str, is_unseen: bool) -> None:
    assert unseen(text) is is_unseen
