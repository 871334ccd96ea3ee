"""A SELECT that looks at other rows than it locks: no schedule comes between its look and its lock (looks.py).

    A: SELECT id, sum, (SELECT sum(n) FROM item) FROM total … FOR UPDATE      has looked, and has locked no row yet
    B: BEGIN, INSERT INTO item …, UPDATE total …, COMMIT                      one transaction, the whole of it
    A:                                                                        locks the row

The search counts on this: one transaction of others that comes there does the same as one before whose COMMIT the whole
SELECT comes, as nothing of a transaction is seen before that (search.py, `_unexplored`). PostgreSQL itself is the
referee here: its SELECT is held between the two, and what it then comes to has to be among what the search has seen.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, LiteralString

import psycopg
import pytest

from lost_update_lab import Result, worker
from lost_update_lab.scenarios.result import INCONCLUSIVE, KEPT
from lost_update_lab.servers.compound import Compound

Trial = Callable[..., Result]
GATE = 20261127
SCHEMA = f"""
DROP TABLE IF EXISTS item, total CASCADE;
CREATE TABLE item (n int NOT NULL);
CREATE TABLE total (id int PRIMARY KEY, sum int NOT NULL);
INSERT INTO total VALUES (1, 0);
CREATE OR REPLACE FUNCTION stops() RETURNS bool LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_advisory_lock({GATE}), pg_advisory_unlock({GATE}); RETURN false; END $$;
CREATE OR REPLACE FUNCTION adds() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO item VALUES (4); UPDATE total SET sum = sum + 4; END $$;
CREATE OR REPLACE FUNCTION enters() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO item VALUES (5); RETURN NULL; END $$;
CREATE TRIGGER enters AFTER UPDATE ON total FOR EACH ROW WHEN (NEW.sum = OLD.sum + 5) EXECUTE FUNCTION enters();
"""
LOOKS = "SELECT id, sum, (SELECT coalesce(sum(n), 0) FROM item) FROM total WHERE id = 1 {held}FOR UPDATE"
ENTERS, ADDS = "INSERT INTO item VALUES (4)", "UPDATE total SET sum = sum + 4"
#: the commands of each transaction
Transactions = list[list[LiteralString]]
ONE_COMMIT: dict[str, Transactions] = {
    "a trigger": [["UPDATE total SET sum = sum + 5"]],
    "two tables in one transaction": [[ENTERS, ADDS]],
    "the locked one first": [[ADDS, ENTERS]],
    "the other table only": [[ENTERS]],
    "another row in its place": [["DELETE FROM total", ENTERS, "INSERT INTO total VALUES (1, 9)"]],
    "the row no longer fits": [[ENTERS, "UPDATE total SET id = 2"]],
    "a lock that is given back": [
        ["SAVEPOINT s", "SELECT id FROM total FOR UPDATE NOWAIT", "ROLLBACK TO s", ENTERS]
    ],
    "one command": [["WITH x AS (INSERT INTO item VALUES (4)) UPDATE total SET sum = sum + 4"]],
    "a function": [["SELECT adds()"]],
}


def opened(address: str) -> None:
    with psycopg.connect(address) as connection:
        connection.execute(SCHEMA)


def left_behind(address: str) -> tuple[Any, ...]:
    with psycopg.connect(address) as connection:
        total = connection.execute("SELECT id, sum FROM total ORDER BY id").fetchall()
        return total, connection.execute("SELECT n FROM item ORDER BY n").fetchall()


def posts(sql: Any, transactions: Transactions) -> None:
    """A command that is alone is sent in autocommit."""
    for commands in transactions:
        if len(commands) == 1:
            sql.execute(commands[0])
        else:
            with sql.transaction():
                for command in commands:
                    sql.execute(command)


def searched(trial: Trial, transactions: Transactions) -> tuple[Result, set[str]]:
    """Every outcome of the search: what the SELECT has found, and what is left in the end."""
    seen: set[str] = set()

    def looks(sql: Any) -> Any:
        return sql.execute(LOOKS.format(held="")).fetchall()

    def noted(found: Any, _: Any) -> bool:
        seen.add(repr((found, *left_behind(os.environ["DATABASE_URL"]))))
        return True

    result = trial(
        [worker("A", looks), worker("B", posts, transactions=transactions)],
        setup=lambda: opened(os.environ["DATABASE_URL"]),
        invariant=noted,
        control=False,
    )
    return result, seen


def between(address: str, transactions: Transactions) -> str:
    """What PostgreSQL comes to if all of them are committed between the look and the lock."""
    opened(address)
    with (
        psycopg.connect(address, autocommit=True) as gate,
        psycopg.connect(address, autocommit=True) as others,
        psycopg.connect(address, autocommit=True) as looks,
    ):
        gate.execute("SELECT pg_advisory_lock(%s)", [GATE])
        looks.pgconn.send_query(LOOKS.format(held="AND NOT stops() ").encode())
        looks.pgconn.flush()
        waits = "SELECT cardinality(pg_blocking_pids(%s)) > 0"
        while gate.execute(waits, [looks.info.backend_pid]).fetchone() != (True,):
            pass
        posts(others, transactions)
        gate.execute("SELECT pg_advisory_unlock(%s)", [GATE])
        rows = looks.pgconn.get_result()
        assert rows is not None
        assert looks.pgconn.get_result() is None
        found = [tuple(int(rows.get_value(row, n) or 0) for n in range(3)) for row in range(rows.ntuples)]
    return repr((found, *left_behind(address)))


@pytest.mark.deep
@pytest.mark.parametrize("transactions", ONE_COMMIT.values(), ids=ONE_COMMIT)
def test_one_commit_between_is_one_behind_which_it_comes(
    trial: Trial, scenario_urls: tuple[str, str], transactions: Transactions
) -> None:
    result, seen = searched(trial, transactions)
    assert (result.verdict, result.exhausted) == (KEPT, True), str(result)
    assert between(scenario_urls[0], transactions) in seen


@pytest.mark.deep
def test_two_commits_between_are_not(trial: Trial, scenario_urls: tuple[str, str]) -> None:
    """So that is no verdict."""
    two: Transactions = [[ENTERS], [ADDS]]
    result, seen = searched(trial, two)
    assert between(scenario_urls[0], two) not in seen
    assert result.verdict == INCONCLUSIVE, str(result)
    assert "looks at rows in a SELECT and locks others later" in str(result)


def test_a_command_that_is_not_two_steps_would_be_noticed(
    trial: Trial, scenario_urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing comes before the COMMIT of a command that is one step."""
    monkeypatch.setattr(Compound, "begins", lambda *_, **__: False)
    monkeypatch.setattr(Compound, "__contains__", lambda *_: False)
    alone = ONE_COMMIT["a trigger"]
    _, seen = searched(trial, alone)
    assert between(scenario_urls[0], alone) not in seen
