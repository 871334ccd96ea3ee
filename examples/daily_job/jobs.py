"""A daily job on a cluster: it sends the day's data to another system, which is Redis here. When does it arrive once?

The row of the job is the record that it ran. A lock on that row (FOR UPDATE) keeps two nodes apart, and a crash of the
node ends it. But the other system takes no part in the transaction, so one of the two comes first.
"""

from __future__ import annotations

import os
from typing import Any

import psycopg
from redis import Redis

DAY = "2024-09-12"


def connect() -> psycopg.Connection[Any]:
    return psycopg.connect(os.environ["DATABASE_URL"])


def other_system() -> Redis:
    return Redis.from_url(os.environ["REDIS_URL"])


def one_day() -> None:
    with connect() as connection:
        connection.execute("CREATE TABLE job (day date PRIMARY KEY, state text NOT NULL DEFAULT 'waiting')")
        connection.execute("INSERT INTO job (day) VALUES (%s)", [DAY])


def waiting(connection: psycopg.Connection[Any]) -> bool:
    """Lock the job's row, and say whether the job is still to do."""
    row = connection.execute("SELECT state FROM job WHERE day = %s FOR UPDATE", [DAY]).fetchone()
    return row is not None and row[0] == "waiting"


def record(connection: psycopg.Connection[Any]) -> None:
    connection.execute("UPDATE job SET state = 'done' WHERE day = %s", [DAY])


def send() -> None:
    """The other system books what it gets, each time."""
    other_system().incr(f"received:{DAY}")


def send_with_key() -> None:
    """The other system books what it gets once for each key: `HSET` of one field is the same twice."""
    other_system().hset("received", DAY, 1)


def record_first() -> None:
    with connect() as connection:
        mine = waiting(connection)
        if mine:
            record(connection)
    if mine:
        send()


def send_first() -> None:
    with connect() as connection:
        if waiting(connection):
            send()
            record(connection)


def send_first_with_key() -> None:
    with connect() as connection:
        if waiting(connection):
            send_with_key()
            record(connection)


def received() -> int:
    with other_system() as redis:
        return int(redis.get(f"received:{DAY}") or 0) + int(redis.hlen("received"))
