"""Pairs of operations, isolation levels, callers that retry."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from lost_update_lab import Mistake, explore, worker
from lost_update_lab.scenarios.isolation import ISOLATION_LEVELS
from lost_update_lab.scenarios.reports import junit, markdown
from tests.lost_update_lab.scenarios.shop import READ, one_voucher, redeem, redeem_locked
from tests.lost_update_lab.scenarios.test_explore import both


@pytest.fixture
def servers(scenario_urls: tuple[str, str]) -> dict[str, Any]:
    return {"database": scenario_urls[0], "redis": scenario_urls[1], "disposable": True, "setup": one_voucher}


@pytest.mark.deep
def test_each_pair_and_each_with_itself(servers: dict[str, Any]) -> None:
    found = explore(pairs=[(redeem, "XMAS", 1), (redeem_locked, "XMAS", 2)], name="voucher", **servers)
    assert {each.part: each.verdict for each in found.parts} == {
        "redeem+redeem": "violated",
        "redeem+redeem_locked": "violated",  # the one writer that takes no lock
        "redeem_locked+redeem_locked": "kept",
    }
    assert (found.verdict, found.exhausted) == ("violated", True)
    assert found.id.endswith("@redeem+redeem")
    assert re.search(
        r"redeem\+redeem_locked +violated +\d+ schedules  v/\w+@redeem\+redeem_locked\n", str(found)
    )
    assert "| voucher (redeem_locked+redeem_locked) | **kept** |" in markdown([found])
    assert junit([found]).count("<testcase") == 3


def test_one_schedule_of_a_pair(servers: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [(redeem, "XMAS", 1), (redeem_locked, "XMAS", 2)]
    monkeypatch.setenv("LOST_UPDATE_LAB_REPLAY", "v/3a@redeem+redeem")
    found = explore(pairs=pairs, **servers)
    assert (found.parts, found.verdict, found.schedules) == ((), "violated", 1)
    monkeypatch.setenv("LOST_UPDATE_LAB_REPLAY", "v/3a")
    with pytest.raises(Mistake, match=r"does not name a part: end it with @redeem\+redeem, "):
        explore(pairs=pairs, **servers)


@pytest.mark.deep
def test_isolation_levels(servers: dict[str, Any]) -> None:
    """READ COMMITTED loses; the stricter levels refuse the second one, which its caller has to try again."""
    found = explore(both(redeem), isolation=ISOLATION_LEVELS, **servers)
    assert {each.part: each.verdict for each in found.parts} == {
        "read-committed": "violated",
        "repeatable-read": "refused",
        "serializable": "refused",
    }
    assert "SerializationFailure" in found.parts[2].sentence


async def redeem_async(code: str, customer: int) -> str:
    async with await psycopg.AsyncConnection.connect(os.environ["DATABASE_URL"]) as db:
        row = await (await db.execute(READ, [code])).fetchone()
        assert row
        if row[0] < 1:
            return "too late"
        await db.execute("UPDATE voucher SET uses = %s WHERE code = %s", [row[0] - 1, code])
        await db.execute("INSERT INTO redemption (code, customer) VALUES (%s, %s)", [code, customer])
    return "redeemed"


def redeem_by_text(code: str, customer: int, sql: Any, begin: Sequence[str] = ("BEGIN",)) -> str:
    for text in begin:
        sql.execute(text)
    row = sql.execute(READ, [code]).fetchone()
    if row[0] > 0:
        sql.execute("UPDATE voucher SET uses = %s WHERE code = %s", [row[0] - 1, code])
        sql.execute("INSERT INTO redemption (code, customer) VALUES (%s, %s)", [code, customer])
    sql.execute("COMMIT")
    return "redeemed" if row[0] > 0 else "too late"


def redeem_anew(code: str, customer: int, sql: Any) -> str:
    """As behind a pool that discards what a session was told."""
    return redeem_by_text(code, customer, sql, ["DISCARD ALL", "BEGIN"])


@pytest.mark.deep
@pytest.mark.parametrize("operation", [redeem_async, redeem_by_text, redeem_anew])
def test_isolation_levels_whoever_sends_begin(servers: dict[str, Any], operation: Any) -> None:
    found = explore(both(operation), isolation=ISOLATION_LEVELS, **servers)
    assert [each.verdict for each in found.parts] == ["violated", "refused", "refused"]
    assert "SerializationFailure" in found.parts[2].sentence


@pytest.mark.deep
def test_a_transaction_that_asks_for_a_level_has_that_one(servers: dict[str, Any]) -> None:
    def asks(code: str, customer: int, sql: Any) -> str:
        return redeem_by_text(code, customer, sql, ["BEGIN ISOLATION LEVEL READ COMMITTED"])

    assert explore(both(asks), isolation="serializable", **servers).verdict == "violated"


@pytest.mark.deep
def test_a_session_that_was_there_before_gets_its_level_back(servers: dict[str, Any]) -> None:
    with psycopg.connect(servers["database"], autocommit=True) as mine:

        def through_it(code: str, customer: int) -> str:
            return redeem_by_text(code, customer, mine)

        workers = [worker("Ann", through_it, "XMAS", 1), worker("Bob", redeem, "XMAS", 2)]
        found = explore(workers, isolation="serializable", **servers)
        assert found.verdict == "refused"
        assert mine.execute("SHOW default_transaction_isolation").fetchone() == ("read committed",)


@pytest.mark.deep
@pytest.mark.parametrize("retry", [psycopg.errors.SerializationFailure, lambda call: _twice(call)])
def test_a_caller_who_tries_again(servers: dict[str, Any], retry: Any) -> None:
    assert explore(both(redeem), isolation="repeatable read", retry=retry, **servers).kept


def redeem_the_first_time(code: str, customer: int) -> str:
    with psycopg.connect(os.environ["DATABASE_URL"]) as db:
        row = db.execute("SELECT COUNT(*) FROM redemption WHERE code = %s", [code]).fetchone()
        assert row
        if row[0]:
            return "too late"
        db.execute("INSERT INTO redemption (code, customer) VALUES (%s, %s)", [code, customer])
    return "redeemed"


@pytest.mark.deep
def test_what_a_serializable_transaction_has_read_is_no_lock_of_its_session(servers: dict[str, Any]) -> None:
    """pg_locks shows it beyond the end of the transaction. A session that called a function (COUNT) is asked for locks
    when it is closed, and had some in one schedule and none in another: "told the same, and does something else"."""
    found = explore(
        both(redeem_the_first_time),
        isolation="serializable",
        retry=psycopg.errors.SerializationFailure,
        **servers,
    )
    assert found.kept, found


def _twice(call: Any) -> Any:
    def tried(*arguments: Any, **keywords: Any) -> Any:
        try:
            return call(*arguments, **keywords)
        except psycopg.OperationalError:
            return call(*arguments, **keywords)

    return tried


def test_pairs_and_workers_and_no_retry(servers: dict[str, Any]) -> None:
    with pytest.raises(Mistake, match="pairs= makes the workers itself"):
        explore(both(redeem), pairs=[redeem], **servers)
    with pytest.raises(Mistake, match="retry= takes exceptions, or a function that wraps"):
        explore(both(redeem), retry=3, **servers)


def test_no_such_level(servers: dict[str, Any]) -> None:
    with pytest.raises(Mistake, match="there is no isolation level 'chaos': read committed"):
        explore(both(redeem), isolation="chaos", **servers)
