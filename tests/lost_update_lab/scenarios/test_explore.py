"""explore(): anybody's operations, every order of their commands, on real servers."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
import pytest
import redis

from lost_update_lab import Result, worker
from lost_update_lab.invariants import balance_conserved, never_below, succeeded, unique
from lost_update_lab.model.epoch import Epoch
from lost_update_lab.scenarios.race import Race
from lost_update_lab.scenarios.result import Interrupted
from lost_update_lab.under_test.scenario import Mistake
from lost_update_lab.under_test.servers import choose
from tests.lost_update_lab.scenarios.shop import one_voucher, redeem, redeem_locked, redemptions

Trial = Callable[..., Result]


def both(redeem: Callable[..., str]) -> list[Any]:
    return [worker("Ann", redeem, "XMAS", customer=1), worker("Bob", redeem, "XMAS", customer=2)]


@pytest.mark.deep
def test_the_default_finds_the_outcome_of_no_serial_order(trial: Trial) -> None:
    result = trial(both(redeem), setup=one_voucher)
    assert result.verdict == "violated"
    assert result.exhausted
    assert result.schedule
    assert result.schedule.confirmed == 10
    told = str(result)
    assert "shop.py:" in told
    assert "left = sql.execute(query, [code]).fetchone()[0]" in told
    assert "voucher[XMAS].uses: 1 → 0" in told
    assert "Bob: here returned redeemed; there returned too late" in told
    assert any("redemption.created" in note for note in result.notes)  # the server's own clock: not compared


@pytest.mark.deep
@pytest.mark.parametrize("faults", [{}, {"crashes": 1}, {"faults": 1}])
def test_a_lock_before_the_read_is_kept(trial: Trial, faults: dict[str, int]) -> None:
    result = trial(both(redeem_locked), setup=one_voucher, **faults)
    assert (result.verdict, result.exhausted, result.schedule) == ("kept", True, None)
    assert "exhausted within these bounds" in str(result)


@pytest.mark.deep
def test_an_invariant_in_the_users_words(trial: Trial) -> None:
    sentence = "a voucher with one use was used twice"
    result = trial(both(redeem), setup=one_voucher, invariant=(lambda: redemptions() <= 1, sentence))
    assert (result.verdict, result.sentence) == ("violated", sentence)


@pytest.mark.deep
def test_an_invariant_may_take_the_results(trial: Trial) -> None:
    one = (lambda a, b: [a, b].count("redeemed") == 1, "both were told that they got it")
    assert trial(both(redeem), setup=one_voucher, invariant=one).sentence == one[1]
    assert trial(both(redeem_locked), setup=one_voucher, invariant=one).kept


@pytest.mark.deep
def test_null_is_like_no_other(trial: Trial) -> None:
    """As for a constraint."""

    def add(sql: Any) -> None:
        sql.execute("INSERT INTO redemption (code, customer) VALUES (NULL, 1)")

    assert trial([add, add], setup=one_voucher, invariant=unique("redemption", "code"), control=False).kept


@pytest.mark.deep
def test_ready_made_invariants(trial: Trial) -> None:
    result = trial(both(redeem), setup=one_voucher, invariant=unique("redemption", "code"))
    assert result.sentence == "two rows of redemption have the same code"
    assert trial(both(redeem_locked), setup=one_voucher, invariant=[unique("redemption", "code")]).kept


ACCOUNTS = "CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL); INSERT INTO account VALUES (1, 50), (2, 0)"


def accounts() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        connection.execute(ACCOUNTS)


def take(amount: int, sql: Any) -> bool:
    """Looks, and takes from what may be less by then."""
    if sql.execute("SELECT balance FROM account WHERE id = 1").fetchone()[0] < amount:
        return False
    sql.execute("UPDATE account SET balance = balance - %s WHERE id = 1", [amount])
    sql.execute("UPDATE account SET balance = balance + %s WHERE id = 2", [amount])
    return True


def take_at_once(amount: int, sql: Any) -> bool:
    with sql.transaction():
        return take(amount, sql)


@pytest.mark.deep
def test_a_floor_and_a_sum(trial: Trial) -> None:
    takers = [(take_at_once, 40), (take_at_once, 30)]
    assert trial(takers, setup=accounts, invariant=never_below("account.balance")).verdict == "violated"
    assert trial(takers, setup=accounts, invariant=balance_conserved("account.balance")).kept


#: as a project keeps it, beside its tests
CONSERVED = balance_conserved("account.balance")


def test_a_ready_made_invariant_is_no_state_of_the_module(trial: Trial) -> None:
    """A note told that it was not the same after each schedule."""
    result = trial(
        [(take_at_once, 40), (take_at_once, 30)], setup=accounts, invariant=CONSERVED, control=False
    )
    assert result.kept
    assert not result.notes


def test_a_column_without_its_table() -> None:
    with pytest.raises(Mistake, match=r"'balance' names no table: write 'account\.balance'"):
        balance_conserved("balance")


@pytest.mark.deep
def test_what_must_hold_at_each_commit_is_asked_at_each(trial: Trial) -> None:
    """The money is underway between two commits, whatever the order: the end does not show it."""
    takers, law = [(take, 10), (take, 20)], balance_conserved("account.balance")
    assert trial(takers, setup=accounts, invariant=law).kept
    assert trial(takers, setup=accounts, always=law).sentence == law.sentence
    assert trial([(take_at_once, 10), (take_at_once, 20)], setup=accounts, always=law).kept


@pytest.mark.deep
def test_a_crash_between_two_commits_leaves_half(trial: Trial) -> None:
    result = trial(
        [(take, 10), (take, 20)], setup=accounts, invariant=balance_conserved("account.balance"), crashes=1
    )
    assert (result.verdict, result.schedule and result.schedule.faults) == ("violated", ("crash",))
    assert "↯" in str(result)


def half_done() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        connection.execute("CREATE TABLE half (who text, done bool)")


def in_two_steps(who: str) -> None:
    for query in ("INSERT INTO half VALUES (%s, false)", "UPDATE half SET done = true WHERE who = %s"):
        for _ in range(2):
            with suppress(psycopg.OperationalError):
                with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
                    connection.execute(query, [who])
                break


def one_is_done() -> bool:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        rows = connection.execute("SELECT DISTINCT who FROM half WHERE NOT done").fetchall()
    return len(rows) < 2


@pytest.mark.deep
@pytest.mark.parametrize(
    ("faults", "word", "told"),
    [
        ({"crashes": 1, "lost_replies": 1}, "kept", "at most 1 crash and 1 lost-reply in each"),
        ({"crashes": 2}, "violated", "at most 2 faults (crash) in each"),
    ],
)
def test_each_kind_of_fault_comes_as_often_as_was_said(
    trial: Trial, faults: dict[str, int], word: str, told: str
) -> None:
    """Two kinds with a limit of one each were two faults of any of the two."""
    workers = [(in_two_steps, "Ann"), (in_two_steps, "Bob")]
    result = trial(
        workers, setup=half_done, invariant=(one_is_done, "both are half done"), control=False, **faults
    )
    assert (result.verdict, told in str(result)) == (word, True), str(result)


def in_opposite_order(first: int, second: int, sql: Any) -> None:
    with sql.transaction():
        for number in (first, second):
            sql.execute("UPDATE account SET balance = balance + 1 WHERE id = %s", [number])


@pytest.mark.deep
def test_a_deadlock_is_found_without_an_invariant(trial: Trial) -> None:
    result = trial([(in_opposite_order, 1, 2), (in_opposite_order, 2, 1)], setup=accounts)
    assert result.verdict == "stalled"
    assert "aborted by the database: deadlock" in result.sentence


@pytest.mark.deep
def test_an_invariant_allows_a_deadlock_and_a_note_says_so(trial: Trial) -> None:
    workers = [(in_opposite_order, 1, 2), (in_opposite_order, 2, 1)]
    given = {"setup": accounts, "invariant": (lambda: True, "all is well"), "control": False}
    result = trial(workers, **given)
    assert result.verdict == "kept", str(result)
    assert any("(deadlock), and nobody tries again" in note for note in result.notes), result.notes
    retried = trial(workers, **given, retry=psycopg.errors.DeadlockDetected)
    assert (retried.verdict, retried.notes) == ("kept", ()), str(retried)


@pytest.mark.deep
def test_a_deadlock_that_the_operation_names_is_its_answer(trial: Trial) -> None:
    workers = [(in_opposite_order, 1, 2), (in_opposite_order, 2, 1)]
    named = [psycopg.errors.DeadlockDetected]
    assert trial(workers, setup=accounts, refusals=named, control=False).verdict == "kept"


@pytest.mark.deep
def test_what_follows_a_deadlock_is_not_explored_if_not_asked_for(trial: Trial) -> None:
    """Everything else is."""
    result = trial([(in_opposite_order, 1, 2), (in_opposite_order, 2, 1)], setup=accounts, deadlocks=False)
    assert (result.verdict, result.exhausted) == ("kept", True)
    assert re.search(r"schedules in \S+ s; \d were left at a deadlock$", result.bounds)
    assert trial(both(redeem), setup=one_voucher, deadlocks=False).verdict == "violated"


@pytest.mark.deep
def test_several_operations_in_a_row_are_units_of_their_own(trial: Trial) -> None:
    twice = worker("Ann", take_at_once, 5).then(take_at_once, 6)
    result = trial([twice, worker("Bob", take_at_once, 7)], setup=accounts)
    assert result.kept, str(result)


def add_once(key: str, redis: Any) -> str:
    if redis.get(key):
        return "known"
    redis.set(key, 1)
    redis.incr("count")
    return "counted"


def test_keys_of_redis_are_part_of_an_outcome(trial: Trial) -> None:
    result = trial([(add_once, "k"), (add_once, "k")])
    assert result.verdict == "violated"
    assert "key count" in str(result)


def raises(sql: Any) -> None:
    raise ValueError(f"no such thing as {sql}")


def test_succeeded() -> None:
    assert succeeded(None)
    assert not succeeded(ValueError("no"))


def looks_twice(sql: Any) -> None:
    """Notices what the other one does meanwhile, and says so."""
    seen = [sql.execute("SELECT balance FROM account WHERE id = 1").fetchone() for _ in range(2)]
    if seen[0] != seen[1]:
        raise KeyError("it changed")
    sql.execute("UPDATE account SET balance = balance + 1 WHERE id = 1")


def test_an_invariant_that_does_not_ask_for_a_failure(trial: Trial) -> None:
    """It was kept without a word."""
    result = trial([looks_twice] * 2, setup=accounts, invariant=never_below("account.balance"))
    (note,) = result.notes
    assert result.kept
    assert note.startswith("in some orders A or B fails, as in no serial order: KeyError: 'it changed'. No")
    asks = (lambda one, other: True, "it has seen the error")
    assert not trial([looks_twice] * 2, setup=accounts, invariant=asks).notes


def test_an_invariant_that_looks_at_what_was_loaded_before(trial: Trial) -> None:
    """It says the same after every order, and was kept."""
    loaded = {"balance": 50}
    blind = lambda: loaded["balance"] >= 0, "below zero"
    takers = [(take_at_once, 40), (take_at_once, 30)]
    result = trial(takers, setup=accounts, control=False, invariant=blind)
    assert (result.verdict, result.exhausted) == ("inconclusive", True)
    assert result.cause.startswith("the invariant (below zero) asks no server and takes no results")
    assert "refresh_from_db()" in result.remedy
    (note,) = trial(takers, setup=accounts, control=False, invariant=CONSERVED, always=blind).notes
    assert note.startswith("the invariant (below zero) asks no server and takes no results")


def test_an_invariant_that_asks_redis_alone(trial: Trial) -> None:
    """By a client of its own, of asyncio too."""

    async def read() -> bool:
        async with redis.asyncio.Redis.from_url(os.environ["REDIS_URL"]) as client:
            return await client.get("k") != b"-1"

    def by_asyncio() -> bool:
        return asyncio.run(read())

    def at_once() -> bool:
        with redis.Redis.from_url(os.environ["REDIS_URL"]) as client:
            return client.get("k") != b"-1"

    for holds in at_once, by_asyncio:
        assert trial([(counts, "k")] * 2, invariant=(holds, "below zero")).kept


def counts(key: str, redis: Any) -> None:
    redis.incr(key)


def test_setups_run_one_after_the_other(scenario_urls: tuple[str, str]) -> None:
    """Of a fixture and of its test. The last one alone was run."""
    database, redis = scenario_urls
    race = Race("two setups", servers=lambda: choose(database, redis))
    race.setup(accounts)
    race.setup(lambda sql: sql.execute("UPDATE account SET balance = 70 WHERE id = 1"))
    for name, amount in ("Ann", 40), ("Bob", 30):
        race.worker(name, take_at_once, amount)
    race.invariant(lambda *taken: all(taken), "there is enough for both")
    assert race.explore(disposable=True).kept


@pytest.mark.deep
def test_a_table_that_was_there_is_left_as_it_was_whatever_its_columns_are_called(
    trial: Trial, scenario_urls: tuple[str, str]
) -> None:
    """`last` and `called` once were variables of the function that restores; `order` is a word of SQL's own."""

    def add() -> None:
        with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
            (last,) = connection.execute('SELECT max("order") FROM place').fetchone() or (0,)
            connection.execute("INSERT INTO place VALUES (%s, 0, true)", [last + 1])

    with psycopg.connect(scenario_urls[0], autocommit=True) as connection:
        connection.execute('CREATE TABLE place ("order" int, last int, called bool)')
        connection.execute("INSERT INTO place VALUES (1, 0, true)")
        try:
            result = trial([add, add], setup=one_voucher, invariant=unique("place", "order"))
            assert result.verdict == "violated"
            assert connection.execute("SELECT * FROM place").fetchall() == [(1, 0, True)]
        finally:
            connection.execute("DROP TABLE place")


def test_a_lease_that_was_there_before_is_left_to_the_server(
    trial: Trial, scenario_urls: tuple[str, str]
) -> None:
    """It was left with the lease of a search once: of 35 years."""
    with redis.Redis.from_url(scenario_urls[1]) as keys:
        keys.set("held", 1, px=60_000)
        assert trial([(add_once, "k"), (add_once, "k")]).verdict == "violated"
        assert 0 < keys.pttl("held") <= 60_000


def test_a_setup_that_recreates_a_table(trial: Trial) -> None:
    """The new one stays, as the setup left it; the others hold what they held."""
    with psycopg.connect(trial.keywords["database"], autocommit=True) as sql:  # type: ignore[attr-defined]
        sql.execute("CREATE TABLE kept (id serial PRIMARY KEY); INSERT INTO kept DEFAULT VALUES")
        sql.execute("CREATE TABLE voucher (id serial PRIMARY KEY)")
        try:

            def anew() -> None:
                with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
                    connection.execute("DROP TABLE voucher; INSERT INTO kept DEFAULT VALUES")
                one_voucher()

            assert trial(both(redeem_locked), setup=anew, control=False).kept
            assert sql.execute("SELECT count(*) FROM kept").fetchone() == (1,)
            assert sql.execute("SELECT count(*) FROM voucher WHERE code = 'XMAS'").fetchone() == (1,)
            assert sql.execute("SELECT to_regclass('redemption')").fetchone() == (None,)
        finally:
            sql.execute("DROP TABLE kept, voucher")


def take_slowly(code: str) -> bool:
    with psycopg.connect(
        os.environ["DATABASE_URL"]
    ) as db:  # one transaction, which begins with its first command
        row = db.execute("SELECT uses FROM voucher WHERE code = %s", [code]).fetchone()
        assert row
        time.sleep(60)
        if row[0] > 0:
            db.execute("UPDATE voucher SET uses = %s WHERE code = %s", [row[0] - 1, code])
    return row[0] > 0


@pytest.mark.deep
def test_a_worker_whose_transaction_has_begun_may_still_be_late(trial: Trial) -> None:
    """A BEGIN shows nothing to anybody: the second worker may read after the first one has slept, or before."""
    result = trial([(take_slowly, "XMAS"), (take_slowly, "XMAS")], setup=one_voucher)
    assert (result.verdict, result.exhausted) == ("violated", True)


class Used(Exception):
    """The key was there."""


def claim_for_an_hour(redis: Any) -> None:
    """A crash between the two leaves the key for ever."""
    if not redis.setnx("claim", 1):
        raise Used
    redis.expire("claim", 3600)
    redis.incr("paid")


@pytest.mark.deep
def test_an_invariant_may_ask_whether_a_key_ends(trial: Trial) -> None:
    """A key with a lease and one without hold the same. The one was judged, and the other taken for it."""

    def ends() -> bool:
        with redis.Redis.from_url(os.environ["REDIS_URL"]) as client:
            return client.ttl("claim") != -1

    both = [claim_for_an_hour] * 2
    laws = {"invariant": (ends, "a key without end"), "refusals": [Used], "control": False}
    assert trial(both, **laws).kept
    assert trial(both, **laws, crashes=1).sentence == "a key without end"


def a_lease() -> None:
    with redis.Redis.from_url(os.environ["REDIS_URL"]) as client:
        client.set("lease", 1, ex=10)


def extend(redis: Any) -> None:
    """By ten seconds more than it has."""
    redis.expire("lease", redis.ttl("lease") + 10)


@pytest.mark.deep
@pytest.mark.parametrize("form", ["ttl", "pttl", "expiretime", "queued"])
def test_an_invariant_that_asks_how_long_a_key_lasts(trial: Trial, form: str) -> None:
    """It was told 35 years. And what is left of a lease is no part of the contents: one answer was taken for all."""

    def lasts() -> set[float]:
        with redis.Redis.from_url(os.environ["REDIS_URL"]) as client:
            if form == "queued":
                with client.pipeline() as pipe:
                    return {pipe.get("lease").ttl("lease").execute()[1]}
            if form == "expiretime":
                return {client.expiretime("lease") - Epoch.shows, client.expiretime("lease")}
            return (
                {client.ttl("lease")} if form == "ttl" else {client.pttl("lease") / 1000, client.ttl("lease")}
            )

    twice = (lambda: bool(lasts() & {30, -2}), "a lease was not extended twice, and has not ended")
    once = (lambda: bool(lasts() & {20, 30, -2}), "it lasts as long as nobody said")
    result = trial([extend] * 2, setup=a_lease, invariant=twice, control=False)
    assert (result.verdict, result.sentence) == ("violated", twice[1])
    assert trial([extend] * 2, setup=a_lease, invariant=once, control=False).kept


@pytest.mark.deep
def test_a_key_that_the_setup_has_made_is_not_new(trial: Trial) -> None:
    def counted() -> None:
        with redis.Redis.from_url(os.environ["REDIS_URL"]) as client:
            client.set("count", 5)

    def count(redis: Any) -> None:
        redis.set("count", int(redis.get("count")) + 1)

    told = str(trial([count, count], setup=counted, control=False))
    assert "key count: 5 → 6" in told
    assert "count is new" not in told


@pytest.mark.deep
def test_ctrl_c_says_what_was_seen_until_then(trial: Trial) -> None:
    """The schedule that has broken the invariant is told, and no other is run."""
    pressed = []

    def holds() -> bool:
        if redemptions() > 1 and not pressed:
            pressed.append(True)
            signal.raise_signal(signal.SIGINT)
        return redemptions() <= 1

    with pytest.raises(Interrupted) as stopped:
        trial(both(redeem), setup=one_voucher, invariant=(holds, "a voucher was used twice"), crashes=1)
    assert stopped.value.result is not None
    assert stopped.value.result.verdict == "violated"
    assert not stopped.value.result.exhausted
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert trial(both(redeem_locked), setup=one_voucher).kept


@pytest.mark.deep
def test_a_setup_asks_for_its_clients(trial: Trial) -> None:
    def opens(sql: Any, redis: Any) -> None:
        sql.execute(ACCOUNTS)
        redis.set("amount", 40)

    def takes(sql: Any, redis: Any) -> bool:
        return take_at_once(int(redis.get("amount")), sql)

    assert trial([takes, takes], setup=opens).verdict == "violated"
