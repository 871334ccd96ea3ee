"""Columns that a DEFAULT fills by the server's clock or by chance: what others write there means something."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result
from lost_update_lab.scenarios.result import KEPT
from lost_update_lab.snapshot.by_server import ByServer
from lost_update_lab.snapshot.chance import draws
from lost_update_lab.under_test.operations import VIOLATED

Trial = Callable[..., Result]
KEYS = [f"00000000-0000-0000-0000-00000000000{each}" for each in range(3)]
#: the declaration of a column, and three values that mean something
COLUMNS = {
    "a word": ("text DEFAULT 'on_time'", ("on_time", "late", "cancelled")),
    "a constant time": ("timestamptz DEFAULT 'infinity'", ("infinity", "2020-01-01", "-infinity")),
    "a constant key": (f"uuid DEFAULT '{KEYS[0]}'", KEYS),
    "the clock": ("timestamptz DEFAULT now()", ("infinity", "2020-01-01", "-infinity")),
    "another clock": ("timestamp DEFAULT LOCALTIMESTAMP", ("infinity", "2020-01-01", "2020-01-02")),
    "a random key": ("uuid DEFAULT gen_random_uuid()", KEYS),
    "a random number": ("int DEFAULT (random() * 100)::int", ("0", "1", "2")),
}


def one_row(column: str, opening: str) -> Callable[[Any], None]:
    def make(sql: Any) -> None:
        sql.execute("DROP TABLE IF EXISTS one, audit")
        sql.execute(f"CREATE TABLE one (id int PRIMARY KEY, said {column})")
        sql.execute("INSERT INTO one VALUES (1, %s)", [opening])

    return make


def asks(urls: tuple[str, str], query: str) -> Callable[[], Any]:
    def holds() -> Any:
        with psycopg.connect(urls[0]) as sql:
            row = sql.execute(query.encode()).fetchone()
            return row and row[0]

    return holds


def says(what: str, sql: Any) -> None:
    sql.execute("UPDATE one SET said = %s", [what])


@pytest.mark.deep_after(2)
@pytest.mark.parametrize("column", COLUMNS)
def test_two_states_that_differ_there_are_two(
    trial: Trial, column: str, scenario_urls: tuple[str, str]
) -> None:
    """Only the first order breaks it. They were merged, and the first outcome that came was all that was judged."""
    declared, (opening, first, second) = COLUMNS[column]
    kind = declared.partition(" ")[0]
    for last in (first, second):
        invariant = asks(scenario_urls, f"SELECT said <> '{last}'::{kind} FROM one")
        workers = [partial(says, first), partial(says, second)]
        result = trial(workers, setup=one_row(declared, opening), invariant=invariant, control=False)
        assert result.verdict == VIOLATED, last


def copies_what_was_said(sql: Any) -> None:
    """A lost update: what the other one said is overwritten."""
    (said,) = sql.execute("SELECT said FROM one").fetchone()
    sql.execute("UPDATE one SET said = %s", [f"{said}!"])


def test_an_update_that_is_lost_in_such_a_column(trial: Trial) -> None:
    setup = one_row("text DEFAULT 'on_time'", "on_time")
    result = trial([copies_what_was_said] * 2, setup=setup, control=False)
    assert result.verdict == VIOLATED


def stamped(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS one, audit")
    sql.execute(
        "CREATE TABLE one (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), who text, lot float DEFAULT random(), "
        "at timestamptz DEFAULT now(), place timestamp DEFAULT now(), token uuid DEFAULT gen_random_uuid())"
    )
    sql.execute("CREATE TABLE audit (one uuid, who text, at timestamptz)")


def adds(who: str, sql: Any) -> Any:
    with sql.transaction():
        row = sql.execute("INSERT INTO one (who) VALUES (%s) RETURNING id", [who]).fetchone()
        sql.execute("INSERT INTO audit VALUES (%s, %s, now())", [row[0], who])
    return row[0]


@pytest.mark.answers_change
def test_what_the_server_writes_by_itself_means_nothing(trial: Trial) -> None:
    """Each run writes other times and other keys: no order is accused of that."""
    result = trial([(adds, "Ann"), (adds, "Bob")], setup=stamped, control=False)
    assert (result.cause, result.verdict) == ("", KEPT)
    told = " ".join(result.notes)
    assert "has written it: audit.at, audit.one, one.at, one.id, one.place, one.token" in told
    assert "writes it: one.lot" in told


def adds_once(who: str, sql: Any) -> None:
    if not sql.execute("SELECT 1 FROM one WHERE who = %s", [who]).fetchone():
        sql.execute("INSERT INTO one (who) VALUES (%s)", [who])


@pytest.mark.deep
def test_rows_with_random_keys_count(trial: Trial) -> None:
    """They were compared in the order of their keys, so `who` differed in each run, and was left out."""
    result = trial([(adds_once, "Ann")] * 2 + [(adds_once, "Bob")], setup=stamped, control=False)
    assert result.verdict == VIOLATED
    assert "who" not in " ".join(result.notes)


def cancels(sql: Any) -> None:
    sql.execute("UPDATE one SET said = DEFAULT WHERE said <> 'infinity'")


def revives(sql: Any) -> None:
    (said,) = sql.execute("SELECT said < '2021-01-01' FROM one").fetchone()
    if said:
        sql.execute("UPDATE one SET said = 'infinity'")


def test_a_cancelled_subscription_that_is_revived(trial: Trial, scenario_urls: tuple[str, str]) -> None:
    """A state with a time by the server's clock is not one with a time that the setup has written."""
    is_cancelled = asks(scenario_urls, "SELECT said <> 'infinity' FROM one")
    for workers in ([cancels, revives], [revives, cancels]):
        setup = one_row("timestamptz DEFAULT now()", "2020-01-01")
        assert trial(workers, setup=setup, invariant=is_cancelled, control=False).verdict == VIOLATED


@pytest.mark.parametrize(
    ("default", "chance"),
    [
        ("'on_time'::text", False),
        ("'infinity'::timestamp with time zone", False),
        ("'now()'::text", False),
        (f"'{KEYS[0]}'::uuid", False),
        ("'a'::character varying", False),
        ("'x''random()'::my_random_type", False),
        ("to_timestamp('0'::double precision)", False),
        ("now()", True),
        ("CURRENT_TIMESTAMP", True),
        ("(CURRENT_TIMESTAMP AT TIME ZONE 'utc'::text)", True),
        ("('now'::text)::timestamp without time zone", True),
        ("timezone('utc'::text, now())", True),
        ("(clock_timestamp() + '1 day'::interval)", True),
        ("gen_random_uuid()", True),
        ("uuid_generate_v4()", True),
        ("extensions.uuid_generate_v1mc()", True),
        ("((random() * (100)::double precision))::integer", True),
        ("current_timestamp() on update current_timestamp()", True),
        ("uuid()", True),
        ("LOCALTIME", True),
    ],
)
def test_which_default_is_chance(default: str, chance: bool) -> None:
    assert draws(default) is chance


def test_what_is_told_of_a_value() -> None:
    known = ByServer(datetime.now(UTC), keys=frozenset({uuid.UUID(KEYS[1]).hex}))
    assert known.has_written("timestamp with time zone", datetime.now(UTC).isoformat())
    assert not known.has_written("timestamp with time zone", "2030-03-17T17:46:40+00:00")
    assert not known.has_written("timestamp with time zone", "infinity")
    assert not known.has_written("uuid", KEYS[1])
    assert known.has_written("uuid", KEYS[2])
    assert not known.has_written("uuid", None)


LATEST = "SELECT status FROM event ORDER BY at DESC LIMIT 1"


def events(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS event")
    sql.execute(
        "CREATE TABLE event (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), status text, at timestamptz DEFAULT now())"
    )
    sql.execute("INSERT INTO event (status, at) VALUES ('new', '2020-01-01')")


def notes(status: str, sql: Any) -> None:
    sql.execute("INSERT INTO event (status) VALUES (%s)", [status])


@pytest.mark.parametrize("statuses", [("paid", "cancelled"), ("cancelled", "paid")])
def test_which_of_two_times_of_the_server_is_later_is_a_part_of_the_state(
    trial: Trial, statuses: tuple[str, str], scenario_urls: tuple[str, str]
) -> None:
    """Each such time was told as any other, so the invariant was asked after one of the two orders only."""

    def shows_as_cancelled() -> bool:
        with psycopg.connect(scenario_urls[0]) as connection:
            return connection.execute(LATEST).fetchone() == ("cancelled",)

    result = trial(
        [(notes, each) for each in statuses],
        setup=events,
        invariant=(shows_as_cancelled, "it shows as paid"),
        control=False,
    )
    assert result.verdict == VIOLATED
