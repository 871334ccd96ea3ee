"""A queue of jobs in one table, in plain psycopg: how two workers take the same job, and how they do not."""

from __future__ import annotations

import os
from typing import Any

import psycopg

SCHEMA = """
CREATE TABLE job (id serial PRIMARY KEY, state text NOT NULL DEFAULT 'waiting', taken_by text);
CREATE TABLE payout (id serial PRIMARY KEY, job int NOT NULL, by text NOT NULL);
"""


def connect() -> psycopg.Connection[Any]:
    return psycopg.connect(os.environ["DATABASE_URL"])


def one_job() -> None:
    with connect() as connection:
        connection.execute(SCHEMA)
        connection.execute("INSERT INTO job DEFAULT VALUES")


def work(name: str, query: str) -> int | None:
    """Take a job and do it: a payout. → its id"""
    with connect() as connection:
        row = connection.execute(query).fetchone()
        if row is None:
            return None
        connection.execute("UPDATE job SET state = 'done', taken_by = %s WHERE id = %s", [name, row[0]])
        connection.execute("INSERT INTO payout (job, by) VALUES (%s, %s)", [row[0], name])
        return int(row[0])


def work_blindly(name: str) -> int | None:
    return work(name, "SELECT id FROM job WHERE state = 'waiting' ORDER BY id LIMIT 1")


def work_skipping_locked(name: str) -> int | None:
    return work(name, "SELECT id FROM job WHERE state = 'waiting' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED")
