"""An invariant that asks a clock gets the real time, and rows hold the virtual one: its verdict counts for nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result
from lost_update_lab.scenarios.result import INCONCLUSIVE, KEPT
from lost_update_lab.under_test.operations import VIOLATED
from lost_update_lab.under_test.scenario import Mistake

Trial = Callable[..., Result]
RUNS = "SELECT count(*) FROM hold WHERE until > {now}"


def holds_table(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS hold, turn; DROP VIEW IF EXISTS live")
    sql.execute("CREATE TABLE turn (id int); INSERT INTO turn VALUES (1)")
    sql.execute("CREATE TABLE hold (who text, until timestamptz)")
    sql.execute("CREATE OR REPLACE VIEW live AS SELECT * FROM hold WHERE until > now()")


def takes(who: str, seconds: int, sql: Any) -> bool:
    with sql.transaction():
        sql.execute("SELECT FROM turn FOR UPDATE")
        if sql.execute("SELECT FROM hold WHERE until > clock_timestamp()").fetchall():
            return False
        query = "INSERT INTO hold VALUES (%s, clock_timestamp() + make_interval(secs => %s))"
        sql.execute(query, [who, seconds])
    return True


def waits_for_it(who: str, sql: Any) -> None:
    while not takes(who, 30, sql):
        time.sleep(2)


def takes_by_python(who: str, sql: Any) -> bool:
    now = datetime.now(UTC)
    with sql.transaction():
        sql.execute("SELECT FROM turn FOR UPDATE")
        if sql.execute("SELECT FROM hold WHERE until > %s", [now]).fetchall():
            return False
        sql.execute("INSERT INTO hold VALUES (%s, %s)", [who, now + timedelta(seconds=30)])
    return True


def counted(url: str, query: str, *values: Any) -> int:
    with psycopg.connect(url) as sql:
        row = sql.execute(query.encode(), values).fetchone()
    return int(row[0]) if row else 0


ASKS: dict[str, Callable[[str], bool]] = {
    "SQL": lambda url: counted(url, RUNS.format(now="now()")) <= 1,
    "a view": lambda url: counted(url, "SELECT count(*) FROM live") <= 1,
    "Python": lambda url: counted(url, RUNS.format(now="%s"), datetime.now(UTC)) <= 1,
}
RIGHT = [partial(waits_for_it, "Ann"), partial(waits_for_it, "Bob")]


@pytest.mark.deep
@pytest.mark.parametrize("way", ASKS)
@pytest.mark.parametrize("kind", ["invariant", "always"])
def test_two_holds_one_after_the_other_are_not_accused(
    trial: Trial, way: str, kind: str, scenario_urls: tuple[str, str]
) -> None:
    """Both seemed to be held, even one after the other."""
    asked: dict[str, Any] = {kind: partial(ASKS[way], scenario_urls[0])}
    result = trial(RIGHT, setup=holds_table, control=False, **asked)
    assert result.verdict == INCONCLUSIVE
    assert result.schedule is None
    assert "one after the other" not in str(result)
    assert result.cause.startswith("the invariant asks for the time (")
    assert "compare times with times" in result.remedy


def test_a_hold_that_has_ended_already_is_not_kept(trial: Trial, scenario_urls: tuple[str, str]) -> None:
    def one_runs() -> bool:
        return counted(scenario_urls[0], RUNS.format(now="now()")) == 1

    def none_was_given() -> bool:
        return not counted(scenario_urls[0], "SELECT count(*) FROM hold")

    workers = [partial(takes, "Ann", -1), partial(takes, "Bob", -1)]
    given: dict[str, Any] = {"setup": holds_table, "control": False}
    result = trial(workers, invariant=lambda: one_runs() or none_was_given(), **given)
    assert result.verdict == INCONCLUSIVE
    workers = [partial(takes, "Ann", -1)] * 2
    with pytest.raises(Mistake, match=r"It asks for the time \(SELECT count.*compare times with times"):
        trial(workers, invariant=lambda: one_runs() and False, **given)


def test_workers_that_look_at_pythons_clock(trial: Trial, scenario_urls: tuple[str, str]) -> None:
    workers = [partial(takes_by_python, "Ann"), partial(takes_by_python, "Bob")]
    result = trial(
        workers, setup=holds_table, invariant=partial(ASKS["SQL"], scenario_urls[0]), control=False
    )
    assert result.verdict == INCONCLUSIVE


@pytest.mark.deep
def test_an_invariant_that_asks_no_clock_is_believed(trial: Trial, scenario_urls: tuple[str, str]) -> None:
    """It compares with what the operations wrote."""
    overlap = (
        "SELECT count(*) FROM hold a JOIN hold b ON a.who < b.who "
        "AND abs(extract(epoch FROM a.until - b.until)) < 30"
    )

    def none_overlap() -> bool:
        return counted(scenario_urls[0], overlap) == 0

    assert trial(RIGHT, setup=holds_table, invariant=none_overlap, control=False).verdict == KEPT


def adds_up(sql: Any) -> None:
    (found,) = sql.execute("SELECT id FROM turn").fetchone()
    sql.execute("UPDATE turn SET id = %s", [found + 1])


def test_a_clock_beside_workers_that_ask_none_is_the_real_one(
    trial: Trial, scenario_urls: tuple[str, str]
) -> None:
    """What the setup wrote has the real time, too."""

    def both_count() -> bool:
        assert counted(scenario_urls[0], RUNS.format(now="now()")) == 0
        return counted(scenario_urls[0], "SELECT id FROM turn") == 3

    result = trial([adds_up, adds_up], setup=holds_table, invariant=both_count, control=False)
    assert result.verdict == VIOLATED
