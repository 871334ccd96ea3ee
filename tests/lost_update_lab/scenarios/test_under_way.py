"""A write outside of a transaction is met while it is under way, wherever that makes a difference."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg import IsolationLevel

from lost_update_lab import Result, worker
from lost_update_lab.scenarios.result import KEPT
from lost_update_lab.servers.compound import Compound
from lost_update_lab.under_test.operations import VIOLATED

Trial = Callable[..., Result]
SCHEMA = """
DROP TABLE IF EXISTS job, shift, parent, child, outbox CASCADE; DROP FUNCTION IF EXISTS claims CASCADE;
CREATE TABLE job (id int PRIMARY KEY, owner text, beat int NOT NULL DEFAULT 0, rank int NOT NULL DEFAULT 0);
INSERT INTO job (id, rank) VALUES (1, 1), (2, 2);
CREATE TABLE shift (id int PRIMARY KEY, on_call bool NOT NULL, paged bool NOT NULL DEFAULT false);
INSERT INTO shift VALUES (1, true), (2, false);
"""
Operation = Callable[[Any], Any]


def opened(more: str = "") -> Callable[[], None]:
    def setup() -> None:
        with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
            connection.execute(SCHEMA + more)

    return setup


def by_itself(*queries: str) -> Operation:
    """In autocommit. Returns how many rows the last one has changed, or what it has returned."""

    def operation(sql: Any) -> Any:
        for query in queries:
            found = sql.execute(query)
        return found.rowcount if found.description is None else [row[0] for row in found]

    return operation


def in_one(*queries: str, level: IsolationLevel | None = None) -> Operation:
    """In one transaction, which gives up where it is refused."""

    def operation(sql: Any) -> Any:
        sql.isolation_level = level
        try:
            with sql.transaction():
                return by_itself(*queries)(sql)
        except psycopg.OperationalError as error:
            return type(error).__name__

    return operation


SWAP = by_itself("UPDATE shift SET on_call = NOT on_call")
PAGE = "UPDATE shift SET paged = true WHERE on_call"
TAKE = by_itself("UPDATE job SET owner = 'Bob' WHERE id = 1 AND owner IS NULL")
BEAT = by_itself("UPDATE job SET beat = beat + 1 WHERE id = 1")
FIRST = "SELECT id FROM job WHERE owner IS NULL ORDER BY id LIMIT 1 FOR UPDATE"
OF_TWO = "UPDATE job SET owner = 'Ann' WHERE id = (SELECT min(id) FROM job WHERE owner IS NULL) RETURNING id"
BY_RANK = "SELECT rank FROM job ORDER BY rank DESC FOR UPDATE"


def one_row(ann: object, bob: object) -> bool:
    return ann == 1


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    ("first", "second", "invariant", "word"),
    [
        # several rows
        (by_itself(PAGE), SWAP, one_row, VIOLATED),
        (in_one(PAGE), SWAP, one_row, VIOLATED),
        (in_one("SELECT id FROM shift ORDER BY id FOR UPDATE", PAGE), SWAP, one_row, KEPT),
        # reads and writes, in a transaction
        (in_one(OF_TWO), TAKE, lambda ann, bob: [ann, bob] != [[1], 1], VIOLATED),
        # locks and picks
        (in_one(FIRST), TAKE, lambda ann, bob: len(ann) == 1, KEPT),
        (in_one(FIRST + " SKIP LOCKED"), TAKE, lambda ann, bob: len(ann) == 1, KEPT),
        (in_one(FIRST + " SKIP LOCKED"), BEAT, lambda ann, bob: ann == [1], VIOLATED),
        (in_one(FIRST), BEAT, lambda ann, bob: ann == [1], KEPT),
        (in_one("SELECT id FROM job WHERE id = 1 FOR UPDATE NOWAIT"), BEAT, lambda ann, bob: ann == [1], VIOLATED),
        (in_one("SELECT id FROM job WHERE id = 1 FOR UPDATE"), BEAT, lambda ann, bob: ann == [1], KEPT),
        (in_one(BY_RANK), by_itself("UPDATE job SET rank = 0 WHERE id = 2"), lambda ann, _: ann == sorted(ann)[::-1],
         VIOLATED),
        # more than READ COMMITTED
        (in_one("UPDATE job SET rank = 9 WHERE id = 1", level=IsolationLevel.REPEATABLE_READ), BEAT, one_row, VIOLATED),
        (in_one("UPDATE job SET rank = 9 WHERE id = 1"), BEAT, one_row, KEPT),
    ],
)  # fmt: skip
def test_what_meets_a_write_under_way(
    trial: Trial,
    first: Operation,
    second: Operation,
    invariant: Any,
    word: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workers = [worker("Ann", first), worker("Bob", second)]
    result = trial(workers, setup=opened(), invariant=invariant, control=False)
    assert (result.verdict, result.exhausted) == (word, True), str(result)
    if word == VIOLATED:
        monkeypatch.setattr(Compound, "begins", lambda *_: False)
        monkeypatch.setattr(Compound, "changed", lambda *_: False)
        missed = trial(workers, setup=opened(), invariant=invariant, control=False)
        assert missed.verdict == KEPT, "the control: it is found by that alone"


@pytest.mark.deep
def test_several_statements_in_one_text(trial: Trial) -> None:
    moves = "UPDATE shift SET on_call = false WHERE id = 1; UPDATE shift SET on_call = true WHERE id = 2"
    workers = [worker("Ann", by_itself(PAGE)), worker("Bob", by_itself(moves))]
    result = trial(workers, setup=opened(), invariant=one_row, control=False)
    assert (result.verdict, result.exhausted) == (VIOLATED, True), str(result)


OUTBOX = "CREATE TABLE outbox (id serial PRIMARY KEY, event text);"
BEAT_OF = "UPDATE job SET beat = beat + 1 WHERE id = {}"
EVENT = "INSERT INTO outbox (event) VALUES ('{}')"
ONE_BY_ONE = "SELECT pg_advisory_xact_lock(1)"


def relays(*before: str) -> Operation:
    """Looks twice for what is newer than what it has seen."""

    def operation(sql: Any) -> list[int]:
        in_one(*before, EVENT.format("Bob"))(sql)
        found: list[int] = []
        for _ in range(2):
            newer = sql.execute("SELECT id FROM outbox WHERE id > %s", [max(found, default=0)])
            found += [number for (number,) in newer]
        return found

    return operation


@pytest.mark.deep
@pytest.mark.parametrize(
    ("first", "relay", "word"),
    [
        (by_itself(EVENT.format("Ann")), relays(), VIOLATED),
        (in_one(EVENT.format("Ann")), relays(), VIOLATED),
        (in_one(ONE_BY_ONE, EVENT.format("Ann")), relays(ONE_BY_ONE), KEPT),
    ],
)
def test_a_smaller_number_is_committed_after_a_larger_one(
    trial: Trial, first: Operation, relay: Operation, word: str
) -> None:
    workers = [worker("Ann", first), worker("Bob", relay)]
    ids = lambda ann, bob: bob in ([1], [1, 2])  # noqa: E731
    result = trial(workers, setup=opened(OUTBOX), invariant=ids, control=False)
    assert (result.verdict, result.exhausted) == (word, True), str(result)


@pytest.mark.parametrize("never", [(1, "Ann"), (2, "Ann"), (1, "Bob"), (2, "Bob")])
def test_a_number_that_no_reply_tells(trial: Trial, never: tuple[int, str]) -> None:
    """A COMMIT was known by what its transaction had been told: not by which number that had drawn."""
    read = lambda sql: sql.execute("SELECT id, event FROM outbox").fetchall()  # noqa: E731
    told = [in_one(EVENT.format(who), BEAT_OF.format(number)) for number, who in ((1, "Ann"), (2, "Bob"))]
    workers = [worker("Ann", told[0]), worker("Bob", told[1]), worker("Cid", read)]
    law = lambda ann, bob, seen: seen != [never]  # noqa: E731
    result = trial(workers, setup=opened(OUTBOX), invariant=law, control=False)
    assert (result.verdict, result.exhausted) == (VIOLATED, True), str(result)


def repeatable(operation: Operation) -> Operation:
    """By a connection whose sessions ask for more than READ COMMITTED, which no command tells."""

    def by_default() -> Any:
        options = r"-c default_transaction_isolation=repeatable\ read"
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True, options=options) as sql:
            return operation(sql)

    return by_default


def beats(sql: Any) -> Any:
    try:
        return BEAT(sql)
    except psycopg.errors.SerializationFailure:
        return "refused"


def reads_twice(sql: Any) -> bool:
    with sql.transaction():
        return len({sql.execute("SELECT beat FROM job WHERE id = 1").fetchone()[0] for _ in range(2)}) == 1


@pytest.mark.deep
@pytest.mark.parametrize(
    ("operation", "word"),
    [(beats, KEPT), (repeatable(beats), VIOLATED), (reads_twice, VIOLATED), (repeatable(reads_twice), KEPT)],
)
def test_an_isolation_that_only_the_session_knows(trial: Trial, operation: Any, word: str) -> None:
    workers = [worker("Ann", operation), worker("Bob", repeatable(BEAT))]
    result = trial(workers, setup=opened(), invariant=lambda ann, bob: ann in (1, True), control=False)
    assert (result.verdict, result.exhausted) == (word, True), str(result)


IN_A_TRIGGER = """
DROP TABLE IF EXISTS ticket CASCADE; DROP DOMAIN IF EXISTS first; DROP FUNCTION IF EXISTS sells, is_first CASCADE;
CREATE TABLE ticket (who text);
CREATE FUNCTION sells() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF EXISTS (SELECT FROM ticket) THEN RAISE EXCEPTION 'sold out'; END IF;
    INSERT INTO ticket VALUES ('somebody');
    RETURN OLD;
END $$;
CREATE FUNCTION is_first() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN NOT EXISTS (SELECT FROM ticket); END $$;
"""


def sold_to(query: str) -> Operation:
    def operation(sql: Any) -> bool:
        try:
            return bool(sql.execute(query).rowcount)
        except (psycopg.errors.RaiseException, psycopg.errors.CheckViolation):
            return False

    return operation


@pytest.mark.deep
@pytest.mark.parametrize(
    ("more", "query"),
    [
        (
            "CREATE TABLE parent (id int PRIMARY KEY); "
            "CREATE TABLE child (id int PRIMARY KEY REFERENCES parent ON DELETE CASCADE); "
            "INSERT INTO parent VALUES (1), (2); INSERT INTO child VALUES (1), (2);"
            "CREATE TRIGGER sells BEFORE DELETE ON child FOR EACH ROW EXECUTE FUNCTION sells();",
            "DELETE FROM parent WHERE id = {}",
        ),
        (
            "CREATE TABLE parent (id int) PARTITION BY LIST (id); "
            "CREATE TABLE child PARTITION OF parent FOR VALUES IN (1, 2); INSERT INTO parent VALUES (1), (2);"
            "CREATE TRIGGER sells BEFORE DELETE ON child FOR EACH ROW EXECUTE FUNCTION sells();",
            "DELETE FROM parent WHERE id = {}",
        ),
        (
            "CREATE DOMAIN first AS int CHECK (is_first()); ALTER TABLE ticket ADD number first;",
            "INSERT INTO ticket (number) VALUES ({})",
        ),
    ],
)
def test_what_reads_where_no_text_shows_it(trial: Trial, more: str, query: str) -> None:
    workers = [worker("Ann", sold_to(query.format(1))), worker("Bob", sold_to(query.format(2)))]
    setup = opened(IN_A_TRIGGER + more)
    result = trial(workers, setup=setup, invariant=lambda ann, bob: not (ann and bob), control=False)
    assert (result.verdict, result.exhausted) == (VIOLATED, True), str(result)


# -- what a worker had sent that has crashed ---------------------------------------------------------------------------

LEADS, RESIGNS = "SELECT pg_advisory_lock(1)", "SELECT pg_advisory_unlock(1)"


def leads(one_session: bool) -> Operation:
    """A leader writes over a connection of its own, or over that which has its lock."""

    def operation(sql: Any) -> None:
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as other:
            sql.execute(LEADS)
            BEAT(sql if one_session else other)
            sql.execute(RESIGNS)

    return operation


def looks(sql: Any) -> bool:
    """The next leader: what it has read is so until it resigns."""
    sql.execute(LEADS)
    found = {sql.execute("SELECT beat FROM job WHERE id = 1").fetchone()[0] for _ in range(2)}
    sql.execute(RESIGNS)
    return len(found) == 1


@pytest.mark.deep
@pytest.mark.parametrize(
    ("one_session", "crashes", "word"), [(False, 0, KEPT), (False, 1, VIOLATED), (True, 1, KEPT)]
)
def test_a_command_that_waits_goes_on_without_its_client(
    trial: Trial, one_session: bool, crashes: int, word: str
) -> None:
    workers = [
        worker("Ann", leads(one_session)),
        worker("Bob", looks),
        worker("Cid", in_one("SELECT id FROM job WHERE id = 1 FOR UPDATE")),
    ]
    steady = lambda ann, bob, cid: bob is not False  # noqa: E731
    result = trial(workers, setup=opened(), invariant=steady, crashes=crashes, control=False)
    assert (result.verdict, result.exhausted) == (word, True), str(result)


async def leads_by_asyncio() -> None:
    """It writes two rows, in one command each."""
    url = os.environ["DATABASE_URL"]
    connecting = [psycopg.AsyncConnection.connect(url, autocommit=True) for _ in range(2)]
    async with await connecting[0] as one, await connecting[1] as other:
        await one.execute(LEADS)
        await other.execute("UPDATE job SET beat = beat + 1 WHERE id = 1")
        await other.execute("UPDATE job SET beat = beat + 1 WHERE id = 2")
        await one.execute(RESIGNS)


def looks_at(number: int, sql: Any) -> bool:
    sql.execute(LEADS)
    query = "SELECT beat FROM job WHERE id = %s"
    found = {sql.execute(query, [number]).fetchone()[0] for _ in range(2)}
    sql.execute(RESIGNS)
    return len(found) == 1


@pytest.mark.deep
@pytest.mark.parametrize(("number", "word"), [(1, VIOLATED), (2, KEPT)])
def test_a_coroutine_of_a_worker_that_has_crashed_sends_nothing_more(
    trial: Trial, number: int, word: str
) -> None:
    """What it had sent is executed. Its code went on with the next command then."""
    workers = [
        worker("Ann", leads_by_asyncio),
        worker("Bob", looks_at, number),
        worker("Cid", in_one("SELECT id FROM job WHERE id = 1 FOR UPDATE")),
    ]
    steady = lambda ann, bob, cid: bob is not False  # noqa: E731
    result = trial(workers, setup=opened(), invariant=steady, crashes=1, control=False)
    assert (result.verdict, result.exhausted) == (word, True), str(result)
