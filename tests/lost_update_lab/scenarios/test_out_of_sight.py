"""What no schedule puts back, or comes to: another database, a sequence's number, an idle session, a process's first
time. Whoever uses it is told so; it was `kept`, of code that loses money."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
import pytest
import redis

from lost_update_lab import Result, worker
from lost_update_lab.under_test.scenario import Mistake

Trial = Callable[..., Result]


def deep(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.deep)


def rows(**options: Any) -> Any:
    return psycopg.connect(os.environ["DATABASE_URL"], **options)


def keys(number: int = 0) -> Any:
    return redis.Redis.from_url(os.environ["REDIS_URL"].replace("db=0", f"db={number}"))


def opened() -> None:
    with rows() as sql:
        sql.execute(
            "CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL, done bool DEFAULT false)"
        )
        sql.execute("INSERT INTO account VALUES (1, 0)")
        sql.execute("CREATE SEQUENCE invoice")
        sql.execute("CREATE VIEW invoices AS SELECT last_value FROM invoice")
        sql.execute("CREATE VIEW held AS SELECT objid FROM pg_locks WHERE locktype = 'advisory'")
        sql.execute(
            "CREATE FUNCTION invoice_is(n int) RETURNS bigint LANGUAGE sql AS $$ SELECT setval('invoice', n) $$"
        )
    keys().set("n", 0)


def refused(trial: Trial, operation: Callable[..., Any], told: str, **options: Any) -> None:
    workers = [worker("Ann", operation, 10), worker("Bob", operation, 20)]
    with pytest.raises(Mistake, match=told):
        trial(workers, setup=opened, **options)


# -- another database -------------------------------------------------------------------------------------------------


def once_by_a_key_elsewhere(amount: int) -> int:
    others, own = keys(1), keys()
    if others.exists("booked"):
        return 0
    others.set("booked", 1)
    own.incrby("n", amount)
    return amount


def selects(amount: int) -> None:
    with keys() as own:
        own.execute_command("SELECT", 1)


def moves(amount: int) -> None:
    keys().move("n", 1)


def moves_by_a_script(amount: int) -> None:
    keys().eval("return redis.call('MOVE', KEYS[1], 1)", 1, "n")


def by_a_row(amount: int) -> None:
    text = "SELECT id FROM account WHERE NOT done FOR UPDATE SKIP LOCKED"
    if rows().execute(text).fetchone():  # and Python closes that connection
        with rows() as sql:
            sql.execute("UPDATE account SET balance = balance + %s, done = true", [amount])


def by_a_session(amount: int) -> None:
    if rows(autocommit=True).execute("SELECT pg_try_advisory_lock(7)").fetchone()[0]:
        keys().incrby("n", amount)


@pytest.mark.parametrize("operation", [by_a_row, by_a_session])
def test_a_connection_that_nobody_refers_to(trial: Trial, operation: Callable[..., Any]) -> None:
    """It was kept open, with its lock, for which the others waited, or turned away."""
    refused(
        trial, operation, "has locked something in a connection to postgres that its code refers to no more"
    )


def by_name(amount: int) -> None:
    own = keys()
    own.client_setname("holder")
    if sum(each["name"] == "holder" for each in own.client_list()) == 1:
        own.incrby("n", amount)


def by_who_listens(amount: int) -> None:
    own = keys()
    with own.pubsub() as listens:
        listens.subscribe("held")
        if own.pubsub_numsub("held")[0][1] == 1:
            own.incrby("n", amount)


@pytest.mark.parametrize("operation", [by_name, by_who_listens])
def test_who_is_connected_to_redis(trial: Trial, operation: Callable[..., Any]) -> None:
    """Names of other schedules' connections were found, and the end of a connection is no step."""
    refused(trial, operation, "asks Redis who is connected, or who listens")


@pytest.mark.parametrize(
    "operation", [once_by_a_key_elsewhere, deep(selects), moves, deep(moves_by_a_script)]
)
def test_another_numbered_database_of_redis(trial: Trial, operation: Callable[..., Any]) -> None:
    refused(trial, operation, "it uses Redis database 1|reaches the keys of another numbered database")


def counts_elsewhere(amount: int) -> None:
    with rows(dbname="postgres") as sql:
        sql.execute("SELECT 1")


def test_another_database_of_postgres(trial: Trial) -> None:
    refused(trial, counts_elsewhere, "it uses the database postgres, and the explorer was given scenarios")


# -- the number of a sequence -----------------------------------------------------------------------------------------


def number(read: str, write: str = "") -> Callable[[int], None]:
    def operation(amount: int) -> None:
        with rows() as sql:
            found = sql.execute(read).fetchone()[0]
            if write:
                sql.execute(write, [found + amount])

    return operation


@pytest.mark.parametrize(
    "operation",
    [
        number("SELECT last_value FROM invoice"),
        deep(number('SELECT is_called FROM public."invoice"')),
        deep(number("SELECT last_value FROM invoices")),
        deep(number("SELECT last_value FROM pg_sequences WHERE sequencename = 'invoice'")),
        deep(number("SELECT 1", "SELECT setval('invoice', %s)")),
        number("SELECT 1", "SELECT invoice_is(%s)"),
    ],
)
def test_a_number_that_is_read_or_set(trial: Trial, operation: Callable[..., Any]) -> None:
    refused(trial, operation, "a command reads, or sets, the number of a sequence")


def test_a_number_that_is_drawn(trial: Trial) -> None:
    """It is another one each time. In a text, or as the name of a column, a sequence is none."""
    draws = number("SELECT nextval('invoice'), 'FROM invoice' AS invoice_is /* FROM invoice */")
    assert trial([worker("Ann", draws, 10), worker("Bob", draws, 20)], setup=opened).kept


# -- who is at work, and what is locked -------------------------------------------------------------------------------

HELD = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 77"


@pytest.mark.parametrize(
    "query",
    [
        HELD,
        deep("SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE state <> 'idle'"),
        deep("SELECT count(*) FROM held"),
        deep("UPDATE account SET balance = 1 WHERE NOT EXISTS (SELECT FROM pg_locks) RETURNING id"),
    ],
)
def test_a_look_at_who_is_at_work(trial: Trial, query: str) -> None:
    """It was told the same twice, whatever the other one had locked in between."""
    refused(trial, number(query), "a command asks PostgreSQL who is at work, or what they have locked")


def test_a_text_that_names_such_a_view_asks_nobody(trial: Trial) -> None:
    told = number("SELECT 'pg_locks' AS pg_lock /* pg_stat_activity */")
    assert trial([worker("Ann", told, 10), worker("Bob", told, 20)], setup=opened).verdict != "inconclusive"


# -- an advisory lock for each row ------------------------------------------------------------------------------------

TRIES = "SELECT id FROM account WHERE NOT done AND pg_try_advisory_xact_lock(id) LIMIT 1"
LOCKS = "SELECT id FROM account WHERE NOT done FOR UPDATE SKIP LOCKED LIMIT 1"


@pytest.mark.parametrize(("query", "verdict"), [(TRIES, "inconclusive"), (LOCKS, "kept")])
def test_a_select_that_tries_an_advisory_lock_for_each_row(trial: Trial, query: str, verdict: str) -> None:
    """What it knows of the row may be older than the lock."""

    def once(amount: int) -> None:
        with rows() as sql:
            if sql.execute(query).fetchone():
                sql.execute("UPDATE account SET done = true, balance = balance + 1")

    def balance() -> bool:
        with rows() as sql:
            return bool(sql.execute("SELECT balance FROM account").fetchone() == (1,))

    found = trial([worker("Ann", once, 10), worker("Bob", once, 20)], setup=opened, invariant=balance)
    assert found.verdict == verdict, str(found)


# -- an idle session --------------------------------------------------------------------------------------------------


def add(options: str, seconds: float = 0) -> Callable[[int], None]:
    """One lock in the database, around a counter in Redis."""

    def operation(amount: int) -> None:
        import time

        with rows(options=options) as sql:
            sql.execute("SELECT pg_advisory_xact_lock(7)")
            value = int(keys().get("n"))
            if seconds:
                time.sleep(seconds)
            keys().set("n", value + amount)

    return operation


INSIDE = "-c idle_in_transaction_session_timeout=5000"


@pytest.mark.parametrize(
    "limit", [INSIDE, deep("-c idle_session_timeout=5000"), deep("-c transaction_timeout=5000")]
)
def test_a_session_that_postgres_would_end_in_a_pause(trial: Trial, limit: str) -> None:
    refused(trial, add(limit), "PostgreSQL would end a session by its .* of 5 s", pauses=1, control=False)


@pytest.mark.parametrize(
    ("limit", "seconds", "kept"), [(INSIDE, 6, False), (INSIDE, 4, True), deep("", 6, True)]
)
def test_a_session_that_stands_idle(trial: Trial, limit: str, seconds: float, kept: bool) -> None:
    operation = add(limit, seconds)
    if kept:
        assert trial([worker("Ann", operation, 10), worker("Bob", operation, 20)], setup=opened).kept
    else:
        refused(trial, operation, "PostgreSQL would end a session by its idle_in_transaction")


# -- what a process does once -----------------------------------------------------------------------------------------

LOCAL = threading.local()
GLOBAL = {"ready": False}


def begins_locally(amount: int) -> None:
    own = keys()
    if not hasattr(LOCAL, "ready") and not own.exists("begun"):
        own.set("begun", 0)
    LOCAL.ready = True
    own.incrby("begun", amount)


def begins_globally(amount: int) -> None:
    own = keys()
    if not GLOBAL["ready"] and not own.exists("begun"):
        own.set("begun", 0)
    GLOBAL["ready"] = True
    own.incrby("begun", amount)


def test_what_a_process_does_once_and_remembers_out_of_sight(trial: Trial) -> None:
    refused(trial, begins_locally, "only the first run sent 'SET begun 0'")


def test_what_it_remembers_in_a_global_is_put_back(trial: Trial) -> None:
    workers = [worker("Ann", begins_globally, 10), worker("Bob", begins_globally, 20)]
    assert trial(workers, setup=opened, control=False).verdict == "violated"


# -- a script that the server does not know ---------------------------------------------------------------------------


def by_hand_without_the_script(amount: int) -> None:
    own = keys()
    try:
        own.evalsha("0" * 40, 0)
    except redis.exceptions.NoScriptError:
        own.set("n", int(own.get("n")) + amount)


def ends_without_the_script(amount: int) -> None:
    with suppress(redis.exceptions.NoScriptError):
        keys().evalsha("1" * 40, 0)


@pytest.mark.parametrize("operation", [by_hand_without_the_script, ends_without_the_script])
def test_a_worker_that_goes_on_without_its_script(trial: Trial, operation: Callable[..., Any]) -> None:
    refused(trial, operation, "hears that Redis does not know a script, and goes on without it")


def test_a_worker_that_loads_it(trial: Trial) -> None:
    def adds(amount: int) -> None:
        own = keys()
        own.register_script(f"-- {os.getpid()}\nreturn redis.call('INCRBY', 'n', ARGV[1])")(args=[amount])

    assert trial([worker("Ann", adds, 10), worker("Bob", adds, 20)], setup=opened).kept
