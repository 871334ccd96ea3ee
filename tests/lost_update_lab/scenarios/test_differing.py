"""What differs between two runs of one order: which columns mean nothing is not up to how rows are paired."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from lost_update_lab import Mistake, Result, worker
from lost_update_lab.scenarios.differing import Differing
from lost_update_lab.snapshot.by_server import ByServer
from lost_update_lab.snapshot.catalogue import Column, Table

Trial = Callable[..., Result]


def table(**types: str) -> Table:
    columns = tuple(Column(name, kind, False, False, False) for name, kind in types.items())
    return Table(1, "public", "invoice", columns, ("id",), ())


def left_out(of: Table, one: list[dict[str, Any]], other: list[dict[str, Any]]) -> set[str]:
    differ = Differing(ByServer(datetime.now(UTC)), (), ())
    return {column for _, column in differ.without({of: one}, {of: other})[1]}


def test_rows_are_not_paired_by_a_random_id() -> None:
    """By their ids, Ann's of one run would be compared with Bob's of the other: `no` and `who` would mean nothing."""
    of = table(id="text", no="integer", who="text")
    one = [{"id": "inv_1", "no": 1, "who": "Ann"}, {"id": "inv_7", "no": 2, "who": "Bob"}]
    other = [{"id": "inv_9", "no": 1, "who": "Ann"}, {"id": "inv_3", "no": 2, "who": "Bob"}]
    assert left_out(of, one, other) == {"id"}
    assert left_out(of, one, one[::-1]) == set()


def test_what_goes_together_counts_too() -> None:
    """Each column holds the same values, but in other rows."""
    of = table(id="integer", who="text")
    one = [{"id": 1, "who": "Ann"}, {"id": 2, "who": "Bob"}]
    other = [{"id": 1, "who": "Bob"}, {"id": 2, "who": "Ann"}]
    assert left_out(of, one, other) == {"who"}


def test_another_number_of_rows() -> None:
    of = table(id="integer", who="text")
    assert left_out(of, [{"id": 1, "who": "Ann"}], []) == set()


def insert(values: str, who: str, sql: Any) -> None:
    sql.execute(f"INSERT INTO event {values}", [who])


def newest(by: str, values: str, who: str, sql: Any) -> str:
    insert(values, who, sql)
    return str(sql.execute(f"SELECT who FROM event {by}").fetchone()[0])


def events(columns: str) -> Callable[[Any], None]:
    return lambda sql: sql.execute(f"CREATE TABLE event (who text, {columns})")


BY_DEFAULT, BY_JSON = "(who) VALUES (%s)", "VALUES (%s, jsonb_build_object('at', clock_timestamp()))"
RISING = {
    "id uuid DEFAULT uuidv7()": (BY_DEFAULT, "ORDER BY id DESC LIMIT 1"),
    "id xid8 DEFAULT pg_current_xact_id()": (BY_DEFAULT, "WHERE id >= ALL (SELECT id FROM event)"),
    "id pg_lsn DEFAULT pg_current_wal_insert_lsn()": (BY_DEFAULT, "WHERE id = (SELECT max(id) FROM event)"),
    "id uuid": ("VALUES (%s, uuidv7())", "ORDER BY id DESC LIMIT 1"),
}


@pytest.mark.deep_after(2)
@pytest.mark.parametrize("columns", RISING)
def test_keys_that_rise_are_not_sorted_by(trial: Trial, columns: str) -> None:
    """It was `kept`, or not, as the workers were listed: which of two keys was larger was no part of a state."""
    values, by = RISING[columns]
    workers = [worker("Ann", newest, by, values, "Ann"), worker("Bob", insert, values, "Bob")]
    with pytest.raises(Mistake, match=r"event.id.*gives its keys out in order.*or sort by one"):
        trial(workers, setup=events(columns), control=False)
    found = trial([worker(who, insert, values, who) for who in ("Ann", "Bob")], setup=events(columns))
    assert found.kept


@pytest.mark.parametrize("first", ["Ann", "Bob"])
def test_the_latest_by_a_time_within_json(trial: Trial, first: str) -> None:
    """Also where one worker comes first."""
    by = "ORDER BY d->>'at' DESC LIMIT 1"
    workers = {"Ann": worker("Ann", newest, by, BY_JSON, "Ann"), "Bob": worker("Bob", insert, BY_JSON, "Bob")}
    listed = [workers.pop(first), *workers.values()]
    result = trial(listed, setup=events("d jsonb"), invariant=lambda *told: "Ann" in told, control=False)
    assert (result.verdict, result.exhausted) == ("violated", True)
