"""A command that reads and writes is explored as the transaction that it is, also where it is sent outside of one."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result, worker
from lost_update_lab.model.errors import ONE_BY_ONE
from lost_update_lab.scenarios.result import KEPT
from lost_update_lab.schedule.pending import LOOKED
from lost_update_lab.servers.compound import Compound
from lost_update_lab.servers.postgres.looks import Looks
from lost_update_lab.under_test.operations import VIOLATED
from lost_update_lab.under_test.scenario import Mistake

Trial = Callable[..., Result]
SCHEMA = """
CREATE TABLE job (id int PRIMARY KEY, owner text);
INSERT INTO job VALUES (1, NULL);
CREATE TABLE seat (id serial PRIMARY KEY, number int NOT NULL, who text NOT NULL);
CREATE TABLE ticket (who text PRIMARY KEY);
CREATE FUNCTION claim(me text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
    PERFORM 1 FROM job WHERE id = 1 AND owner IS NULL {locks};
    IF NOT FOUND THEN RETURN false; END IF;
    UPDATE job SET owner = me WHERE id = 1;
    RETURN true;
END $$;
CREATE PROCEDURE take(me text) LANGUAGE plpgsql AS $$ BEGIN
    IF EXISTS (SELECT FROM job WHERE id = 1 AND owner IS NULL {locks}) THEN
        UPDATE job SET owner = me WHERE id = 1;
    END IF;
    {commits}
END $$;
CREATE FUNCTION one_ticket() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    {waits}
    IF EXISTS (SELECT FROM ticket) THEN RAISE EXCEPTION 'sold out'; END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER one_ticket BEFORE INSERT ON ticket FOR EACH ROW EXECUTE FUNCTION one_ticket();
"""
DROPPED = "DROP ROUTINE IF EXISTS claim, one_ticket, take CASCADE; DROP TABLE IF EXISTS job, seat, ticket;"


def opened(locks: str = "", waits: str = "", commits: str = "") -> Callable[[], None]:
    def setup() -> None:
        with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
            connection.execute(DROPPED + SCHEMA.format(locks=locks, waits=waits, commits=commits))

    return setup


CLAIM = "UPDATE job SET owner = %s WHERE id = (SELECT id FROM job WHERE owner IS NULL LIMIT 1{}) RETURNING id"
BOOK = "INSERT INTO seat (number, who) SELECT 7, %s WHERE NOT EXISTS (SELECT FROM seat WHERE number = 7) RETURNING id"
LOCKED = (
    "WITH free AS (SELECT id FROM job WHERE owner IS NULL{}) "
    "UPDATE job SET owner = %s FROM free WHERE job.id = free.id"
)


def sent(query: str) -> Callable[[str, Any], bool]:
    """In autocommit, as the connection that is handed in is."""

    def operation(who: str, sql: Any) -> bool:
        try:
            return bool(sql.execute(query, [who]).rowcount)
        except psycopg.errors.RaiseException:
            return False

    return operation


def both(operation: Callable[..., Any]) -> list[Any]:
    return [worker("Ann", operation, "Ann"), worker("Bob", operation, "Bob")]


def one_got_it(ann: object, bob: object) -> bool:
    return [ann, bob].count(True) <= 1


@pytest.mark.deep
@pytest.mark.parametrize(
    ("query", "word"),
    [
        (CLAIM.format(""), VIOLATED),
        (CLAIM.format(" FOR UPDATE SKIP LOCKED"), KEPT),
        (LOCKED.format(""), VIOLATED),
        (LOCKED.format(" FOR UPDATE SKIP LOCKED"), KEPT),
        (BOOK, VIOLATED),
        ("-- name: Claim :one\n/* by a tool */ " + CLAIM.format(""), VIOLATED),
        ("INSERT INTO ticket VALUES (%s)", VIOLATED),
        ("UPDATE job SET owner = %s WHERE id = 1 AND owner IS NULL", KEPT),
    ],
)
def test_two_at_once_in_one_command(trial: Trial, query: str, word: str) -> None:
    result = trial(both(sent(query)), setup=opened(), invariant=one_got_it, crashes=1, control=False)
    assert (result.verdict, result.exhausted) == (word, True)


TAKE = "UPDATE job SET owner = %s WHERE id = 1 AND owner IS NULL"


@pytest.mark.deep
def test_one_that_reads_meets_one_that_does_not(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one step, that one would never be under way when the other reads."""
    workers = [worker("Ann", sent(TAKE), "Ann"), worker("Bob", sent(CLAIM.format("")), "Bob")]
    result = trial(workers, setup=opened(), invariant=one_got_it, control=False)
    assert (result.verdict, result.exhausted) == (VIOLATED, True)
    alone = trial(both(sent(TAKE)), setup=opened(), invariant=one_got_it, crashes=1, control=False)
    assert (alone.verdict, alone.exhausted) == (KEPT, True)
    monkeypatch.setattr(Compound, "begins", lambda *_: False)
    monkeypatch.setattr(Looks, "hold", lambda *_: None)
    missed = trial(workers, setup=opened(), invariant=one_got_it, control=False)
    assert (missed.verdict, missed.exhausted) == (KEPT, True), "the control: it is found by that alone"


def streamed(who: str, sql: Any) -> bool:
    return bool(list(sql.cursor().stream(CLAIM.format(""), [who])))


def test_one_that_is_streamed(trial: Trial) -> None:
    result = trial(both(streamed), setup=opened(), invariant=one_got_it, control=False)
    assert (result.verdict, result.exhausted) == (VIOLATED, True)


def claimed_by_a_cursor(who: str, sql: Any) -> bool:
    cursor = sql.cursor(name="of_the_server", withhold=True)
    return bool(cursor.execute("SELECT claim(%s)", [who]).fetchone()[0])


def test_one_that_no_begin_can_come_before_is_not_judged(trial: Trial) -> None:
    with pytest.raises(Mistake, match="server-side cursor outside of a transaction"):
        trial(both(claimed_by_a_cursor), setup=opened(""), invariant=one_got_it)


def claimed(who: str, sql: Any) -> bool:
    return bool(sql.execute("SELECT claim(%s)", [who]).fetchone()[0])


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(("locks", "word"), [("", VIOLATED), ("FOR UPDATE", KEPT)])
def test_two_at_once_in_one_call_of_a_function(trial: Trial, locks: str, word: str) -> None:
    result = trial(both(claimed), setup=opened(locks), invariant=one_got_it, control=False)
    assert (result.verdict, result.exhausted) == (word, True)


BLOCK = """DO $$ BEGIN PERFORM 1 FROM job WHERE owner IS NULL {};
    IF FOUND THEN UPDATE job SET owner = '{}'; END IF; END $$"""


def by_a_procedure(who: str, sql: Any) -> str:
    sql.execute("CALL take(%s)", [who])
    return sql.execute("SELECT owner FROM job").fetchone()[0]


def in_a_block(locks: str) -> Callable[[str, Any], str]:
    def operation(who: str, sql: Any) -> str:
        sql.execute(BLOCK.format(locks, who))
        return sql.execute("SELECT owner FROM job").fetchone()[0]

    return operation


@pytest.mark.deep
@pytest.mark.parametrize(
    ("operation", "locks", "word"),
    [
        (by_a_procedure, "", VIOLATED),
        (by_a_procedure, "FOR UPDATE", KEPT),
        (in_a_block(""), "", VIOLATED),
        (in_a_block("FOR UPDATE"), "", KEPT),
    ],
)
def test_two_at_once_in_one_procedure(trial: Trial, operation: Any, locks: str, word: str) -> None:
    def same_owner(ann: object, bob: object) -> bool:
        return ann == bob

    invariant = same_owner, "a job that was taken was taken over"
    result = trial(both(operation), setup=opened(locks), invariant=invariant, control=False)
    assert (result.verdict, result.exhausted) == (word, True)


def test_a_commit_that_begins_the_next_transaction_is_not_judged(trial: Trial) -> None:
    """It was "not repeatable", of right code, too."""

    def chains(who: str, sql: Any) -> None:
        sql.execute("BEGIN")
        sql.execute("UPDATE job SET owner = %s WHERE id = 1", [who])
        sql.execute("COMMIT AND CHAIN")
        sql.execute("COMMIT")

    with pytest.raises(Mistake, match="ends a transaction and begins the next") as mistake:
        trial(both(chains), setup=opened())
    assert "send COMMIT, or ROLLBACK, and then BEGIN" in str(mistake.value)


def by_text(sql: Any) -> None:
    sql.execute("BEGIN")
    sql.execute("UPDATE job SET owner = 'Ann' WHERE id = 1")
    sql.execute("PREPARE TRANSACTION 'one'")


def by_psycopg(sql: Any) -> None:
    sql.commit()
    sql.autocommit = False
    sql.tpc_begin("one")
    sql.execute("UPDATE job SET owner = 'Ann' WHERE id = 1")
    sql.tpc_prepare()


@pytest.mark.parametrize("prepares", [by_text, by_psycopg])
def test_a_transaction_is_not_prepared(trial: Trial, prepares: Callable[[Any], None]) -> None:
    """Where the server allows it, what was prepared kept its locks beyond the search, which could not clean up."""
    with pytest.raises(Mistake, match=r"belongs to no session.*send COMMIT in place of PREPARE TRANSACTION"):
        trial([(prepares,)] * 2, setup=opened())


def test_a_procedure_that_commits_inside_is_not_judged(trial: Trial) -> None:
    with pytest.raises(Mistake, match="a procedure commits inside") as mistake:
        trial(both(by_a_procedure), setup=opened(commits="COMMIT;"))
    assert ONE_BY_ONE in str(mistake.value)


@pytest.mark.deep
def test_a_trigger_that_takes_a_lock_first(trial: Trial) -> None:
    setup = opened(waits="LOCK TABLE ticket IN SHARE ROW EXCLUSIVE MODE;")
    result = trial(
        both(sent("INSERT INTO ticket VALUES (%s)")), setup=setup, invariant=one_got_it, control=False
    )
    assert (result.verdict, result.exhausted) == (KEPT, True), str(result)


async def claimed_async(who: str) -> bool:
    async with await psycopg.AsyncConnection.connect(os.environ["DATABASE_URL"], autocommit=True) as sql:
        return bool((await sql.execute(CLAIM.format(""), [who])).rowcount)


@pytest.mark.deep
def test_in_a_coroutine(trial: Trial) -> None:
    assert trial(both(claimed_async), setup=opened(), invariant=one_got_it).verdict == VIOLATED


@pytest.mark.deep
def test_its_transaction_is_told(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else nobody could see why the second one takes what the first one has taken."""
    result = trial(both(sent(CLAIM.format(""))), setup=opened(), invariant=one_got_it, control=False)
    told = [line.strip() for line in str(result).splitlines()]
    assert [line for line in told if line.startswith("COMMIT")] == ["COMMIT  → by itself"] * 2
    assert any(line.startswith("UPDATE job") and line.endswith(LOOKED) for line in told)
    monkeypatch.setattr(Looks, "hold", lambda *_: None)
    told = str(trial(both(sent(CLAIM.format(""))), setup=opened(), invariant=one_got_it, control=False))
    assert "→ 1, sent earlier: it waited" in told
