"""What no look at a server shows is not taken for known: there every schedule is executed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from lost_update_lab.harness import Harness
from lost_update_lab.model.bounds import SECOND
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.search.search import Search
from lost_update_lab.servers.postgres.memoised import PostgresAnswer, PostgresSession
from lost_update_lab.servers.postgres.server import PostgresServer
from lost_update_lab.servers.postgres.transactions import draws_number
from lost_update_lab.servers.redis.repeatable import repeatable
from tests.lost_update_lab import bank
from tests.lost_update_lab.staying import StayingAnswers
from tests.lost_update_lab.test_in_memory_run import told

Explore = Callable[..., SearchResult]


@pytest.mark.parametrize(
    ("statement", "draws"),
    [
        ("UPDATE account SET balance = %s WHERE id IN (%s)", False),
        ("SELECT balance FROM account WHERE (id = %s) FOR UPDATE NOWAIT", False),
        ("SELECT nextval('numbers')", True),
        ('INSERT INTO "account" ("id", "balance") VALUES (%s, %s)', False),
        ("INSERT INTO account (id) VALUES (%s) ON CONFLICT (id) DO NOTHING", False),
        ("INSERT INTO account (id) VALUES (nextval('numbers'))", True),
        ('INSERT INTO "numbered" ("name") VALUES (%s)', True),
        ("INSERT INTO account SELECT 1", True),
        ("WITH made AS (INSERT INTO numbered DEFAULT VALUES) SELECT 1", True),
    ],
)
def test_which_commands_draw_a_number(statement: str, draws: bool) -> None:
    assert draws_number(f"{statement} ← [1]", {"numbered"}) == draws


def test_another_answer_to_the_same_question_is_noticed() -> None:
    """The must-fail control of the fixture `answers_stay`."""
    changed: list[str] = []
    answers = StayingAnswers(changed)
    answers["asked"] = PostgresAnswer(b"1", "1", "", b"", b"12:00", False, PostgresSession())
    answers["asked"] = PostgresAnswer(b"1", "1", "", b"", b"12:01", False, PostgresSession())
    assert not changed, "the server's clock makes no state"
    answers["asked"] = PostgresAnswer(b"2", "2", "", b"", b"", False, PostgresSession())
    assert len(changed) == 1


def test_a_table_with_a_sequence_or_a_trigger_counts(explorer_urls: tuple[str, str]) -> None:
    with psycopg.connect(explorer_urls[0], autocommit=True) as admin:
        admin.execute(
            "CREATE TABLE plain (id int, made int DEFAULT 7); CREATE TABLE counted (id serial);"
            "CREATE TABLE counted_too (id int GENERATED ALWAYS AS IDENTITY); CREATE TABLE watched (id int);"
            "CREATE TRIGGER t BEFORE UPDATE ON watched EXECUTE FUNCTION suppress_redundant_updates_trigger()"
        )
        server = PostgresServer(explorer_urls[0], "SELECT 1")
        server.begin()
        found = {"plain", "counted", "counted_too", "watched"} & set(server.answers.counting or ())
        server.close()
        admin.execute("DROP TABLE plain, counted, counted_too, watched")
    assert found == {"counted", "counted_too", "watched"}


@pytest.fixture
def own_table(explorer_urls: tuple[str, str]) -> Iterator[None]:
    """A lock's own table, that the contents do not show."""
    with psycopg.connect(explorer_urls[0], autocommit=True) as admin:
        admin.execute("CREATE TABLE own_locks (name text PRIMARY KEY)")
        yield
        admin.execute("DROP TABLE own_locks")


def in_a_table(own: bank.Bank) -> Any:
    @contextmanager
    def lock() -> Iterator[None]:
        if not own.sql.execute(
            "INSERT INTO own_locks (name) VALUES ('lock') ON CONFLICT DO NOTHING"
        ).rowcount:
            raise bank.GaveUp
        yield
        own.sql.execute("DELETE FROM own_locks")

    return lock()


def test_what_no_look_shows_is_executed(explore: Explore, own_table: None) -> None:
    deposit = bank.locked_by(in_a_table)
    in_memory, executed = (
        explore(deposit, patience=SECOND),
        explore(deposit, patience=SECOND, in_memory=False),
    )
    assert told(in_memory) == told(executed)
    assert in_memory.exhausted, in_memory.cause


@pytest.mark.parametrize(("deposit", "closed"), [(bank.locked_by(in_a_table), True), (bank.no_lock, False)])
def test_nothing_is_known_once_something_is_written_that_no_look_shows(
    harness: Callable[..., Harness], own_table: None, deposit: Any, closed: bool
) -> None:
    explored = harness(deposit)
    result = Search(explored).explore()
    postgres = explored.servers["postgres"]
    assert isinstance(postgres, PostgresServer)
    assert (postgres.answers.closed, not postgres.answers.known) == (closed, closed)
    assert (result.in_memory == 0) == closed


def test_a_function_that_uses_another_table_shows_no_more_than_it(
    explorer_urls: tuple[str, str], own_table: None
) -> None:
    with psycopg.connect(explorer_urls[0], autocommit=True) as admin:
        admin.execute("CREATE FUNCTION take() RETURNS void LANGUAGE sql AS 'DELETE FROM own_locks'")
        admin.execute("CREATE FUNCTION take_twice() RETURNS void LANGUAGE sql AS 'SELECT take()'")
        server = PostgresServer(explorer_urls[0], bank.CONTENTS)
        try:
            assert server.writes_unseen("SELECT take_twice()")
            assert not server.writes_unseen("UPDATE account SET balance = 1 ← own_locks")
        finally:
            server.close()
            admin.execute("DROP FUNCTION take_twice; DROP FUNCTION take")


@pytest.mark.parametrize(
    ("words", "script", "known"),
    [
        ([b"set", b"lock", b"1", b"NX"], None, True),
        ([b"watch", b"lock"], None, True),  # whether it is broken is known
        ([b"SRANDMEMBER", b"set"], None, False),
        ([b"XREADGROUP", b"GROUP", b"g", b"c"], None, True),  # what a group has read is shown
        ([b"XAUTOCLAIM", b"s", b"g", b"c", b"5"], None, True),  # how long a message is pending is virtual
        ([b"XINFO", b"CONSUMERS", b"s", b"g"], None, False),
        ([b"EVAL", b"text", b"0"], b"return redis.call('GET', KEYS[1])", True),
        ([b"EVALSHA", b"text", b"0"], None, False),
        ([b"EVAL", b"text", b"0"], b"return redis.call('SRANDMEMBER', KEYS[1])", False),
        ([b"EVAL", b"text", b"0"], b"local call = redis.call return call('SPOP', KEYS[1])", False),
        ([b"EVAL", b"text", b"0"], b"return redis.call(ARGV[1], KEYS[1])", False),
        ([b"EVAL", b"text", b"0"], b"return math.random(3)", False),
    ],
)
def test_only_what_answers_the_same_every_time_is_known(words: Any, script: Any, known: bool) -> None:
    assert repeatable(words, script) is known
