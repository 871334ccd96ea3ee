"""Pairs of transactions, each as statements that are sent one by one, and as a function that PostgreSQL executes."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Sequence
from typing import Any

import psycopg

from lost_update_lab import Result, explore, worker

TABLES = """
DROP TABLE IF EXISTS account, entry, voucher;
CREATE TABLE account (id int PRIMARY KEY, n int);
CREATE TABLE entry (who int, n int);
CREATE TABLE voucher (id int PRIMARY KEY, who int);
INSERT INTO account VALUES (1, 10), (2, 20);
"""
CONTENTS = [f"SELECT * FROM {table} ORDER BY 1, 2" for table in ("account", "entry", "voucher")]
#: in PL/pgSQL. `me`: the number of the caller. `r`: what was read last
STATEMENTS = (
    "UPDATE account SET n = n + 1 WHERE id = 1",
    "UPDATE account SET n = n + 5 WHERE id = 2",
    "UPDATE account SET n = n * 2 WHERE id = 1",
    "UPDATE account SET n = n + 100",
    "UPDATE account SET n = r + 7 WHERE id = 1",
    "UPDATE account SET n = r + 9 WHERE id = 2",
    "UPDATE account SET n = (SELECT coalesce(sum(e.n), 0) FROM entry e) WHERE id = 1",
    "SELECT n INTO r FROM account WHERE id = 1",
    "SELECT sum(n) INTO r FROM account",
    "SELECT n INTO r FROM account WHERE id = 1 FOR UPDATE",
    "SELECT n INTO r FROM account WHERE id = 2 FOR UPDATE",
    "PERFORM n FROM account ORDER BY id FOR UPDATE",
    "PERFORM pg_advisory_xact_lock(1)",
    "PERFORM pg_advisory_xact_lock(2)",
    "SELECT count(*) INTO r FROM entry",
    "INSERT INTO entry VALUES (me, r)",
    "INSERT INTO voucher VALUES (1, me)",
    "INSERT INTO voucher VALUES (1, me) ON CONFLICT DO NOTHING",
    "INSERT INTO voucher VALUES (1, me) ON CONFLICT (id) DO UPDATE SET who = voucher.who + 10",
    "DELETE FROM voucher WHERE id = 1",
)
Program = Sequence[str]


def pair(seed: int) -> list[Program]:
    chance = random.Random(seed)
    return [[chance.choice(STATEMENTS) for _ in range(chance.choice([2, 3, 3, 4]))] for _ in range(2)]


def function(me: int, program: Program) -> str:
    """The program as the function of this caller. It returns what was read last."""
    body = "; ".join(program)
    return f"""CREATE OR REPLACE FUNCTION of_{me}() RETURNS int LANGUAGE plpgsql AS $$
        DECLARE r int := 0; me int := {me}; BEGIN {body}; RETURN coalesce(r, 0); END $$;"""


def one_by_one(me: int, program: Program, sql: Any) -> int | str:
    read = 0
    try:
        with sql.transaction():
            for statement in program:
                text = statement.replace("PERFORM", "SELECT").replace(" INTO r", "")
                found = sql.execute(re.sub(r"\br\b", str(read), re.sub(r"\bme\b", str(me), text)))
                if " INTO r" in statement:
                    read = int(found.fetchone()[0] or 0)
    except psycopg.Error as error:
        return type(error).__name__
    return read


def as_a_function(me: int, program: Program, sql: Any) -> int | str:
    try:
        with sql.transaction():
            (read,) = sql.execute(f"SELECT of_{me}()").fetchone()
    except psycopg.Error as error:
        return type(error).__name__
    return int(read)


def outcomes(programs: Sequence[Program], how: Any, **where: Any) -> tuple[Result, set[str]]:
    """Each outcome that some order of the two has: what they return, and all rows."""
    found = set[str]()

    def setup(sql: Any) -> None:
        sql.execute(TABLES + "".join(function(me, program) for me, program in enumerate(programs)))

    def notes(ann: Any, bob: Any) -> bool:
        with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
            rows = [connection.execute(query).fetchall() for query in CONTENTS]
        found.add(repr((ann, bob, rows)))
        return True

    workers = [worker(name, how, me, programs[me]) for me, name in enumerate(("Ann", "Bob"))]
    return explore(workers, setup=setup, invariant=(notes, "is noted"), control=False, **where), found
