"""A mistake in a scenario is reported in one sentence, with the remedy, before any schedule is explored."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg
import psycopg_pool
import pymysql
import pytest
import redis

from lost_update_lab import Mistake, Result, explore, worker
from lost_update_lab.invariants import balance_conserved, never_below, unique
from lost_update_lab.runs import hang
from lost_update_lab.scenarios.judging import is_deadlock
from lost_update_lab.scenarios.result import KEPT
from lost_update_lab.under_test import servers
from tests.lost_update_lab.scenarios.shop import one_voucher, redeem, redeem_locked, redemptions

Trial = Callable[..., Result]


def two(operation: Any) -> list[Any]:
    return [worker("Ann", operation, "XMAS", 1), worker("Bob", operation, "XMAS", 2)]


def test_no_callable() -> None:
    with pytest.raises(Mistake, match="'done' of Ann is no callable, but str"):
        worker("Ann", "done")


def test_a_generator() -> None:
    def redeems() -> Iterator[None]:
        yield

    with pytest.raises(Mistake, match=r"redeems of Ann is a generator: to call it runs none of it"):
        worker("Ann", redeems)


def test_arguments_that_do_not_fit() -> None:
    with pytest.raises(Mistake, match=r"Ann cannot call redeem: redeem\(\) misses the argument 'customer'"):
        worker("Ann", redeem, "XMAS")


@pytest.mark.parametrize("count", [1, 9])
def test_too_few_and_too_many_workers(trial: Trial, count: int) -> None:
    with pytest.raises(Mistake, match=f"{count} worker.*a race needs 2"):
        trial([lambda: None] * count)


def test_an_unknown_fault(trial: Trial) -> None:
    with pytest.raises(Mistake, match="there is no 'earthquakes': the faults are crashes, pauses"):
        trial(two(redeem), setup=one_voucher, earthquakes=1)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"crashes": "1"}, "crashes counts how many may come in one schedule: write crashes=1, not '1'"),
        ({"faults": 1.5}, "faults counts how many"),
        ({"pauses": -1}, "pauses counts how many"),
        ({"mutate": "yes"}, "mutate is True or False, not 'yes'"),
        ({"budget": "60"}, "budget is a number of seconds, above 0, not '60'"),
        ({"slack": -1}, "slack is a number of seconds, 0 or more"),
        ({"setup": "one_voucher"}, "the setup is no callable, but str: give the function itself"),
        ({"refusals": "TooLate"}, r"refusals are the exceptions .*refusals=\[TooLate\], not 'TooLate'"),
        ({"refusals": [ValueError()]}, r"refusals are the exceptions .*not ValueError\(\)"),
        ({"isolation": []}, r"isolation=\[\] names no level: read committed"),
        ({"isolation": [4]}, "there is no isolation level 4: read committed"),
        ({"invariant": never_below}, "never_below is a class, and not yet an invariant: call it"),
        ({"invariant": lambda: unique("redemption", [])}, "names no column: write unique"),
    ],
)
def test_an_argument_of_another_kind(trial: Trial, given: dict[str, Any], told: str) -> None:
    with pytest.raises(Mistake, match=told):
        trial(two(redeem), **{"setup": one_voucher, **given})


@pytest.mark.parametrize("none", [None, 5])
def test_no_workers(none: Any) -> None:
    with pytest.raises(Mistake, match="takes a list of workers"):
        explore(none)


def test_arguments_of_a_kind_that_is_meant(trial: Trial) -> None:
    """psycopg's own levels, and one class of exceptions."""
    result = trial(
        two(redeem_locked),
        setup=one_voucher,
        isolation=[psycopg.IsolationLevel.READ_COMMITTED],
        refusals=ValueError,
        control=False,
    )
    assert result.verdict == KEPT


@pytest.mark.deep
def test_a_worker_that_raises_at_once(trial: Trial) -> None:
    def broken(code: str, customer: int) -> None:
        raise KeyError(code)

    told = r"Ann fails in every order, even when it runs alone: KeyError: 'XMAS' \(.*test_mistakes\.py:\d+: raise Key"
    with pytest.raises(Mistake, match=told):
        trial(two(broken), setup=one_voucher)
    with pytest.raises(Mistake, match=r"UndefinedTable: .*, and the scenario has no setup\. Fix that first"):
        trial(two(redeem))


def test_a_setup_that_does_not_commit(trial: Trial) -> None:
    open_: list[Any] = []

    def forgets() -> None:
        open_.append(psycopg.connect(os.environ["DATABASE_URL"]))
        open_[0].execute("CREATE TABLE left_open ()")

    try:
        with pytest.raises(Mistake, match="commits nothing: its transaction is still open"):
            trial(two(redeem), setup=forgets)
    finally:
        open_[0].close()


def test_a_setup_that_does_nothing(trial: Trial) -> None:
    with pytest.raises(Mistake, match="commits nothing: the servers hold what they held before"):
        trial(two(redeem), setup=lambda: None)


def test_a_time_limit_by_a_signal(trial: Trial) -> None:
    def redeems_in_time(sql: Any) -> None:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)

    with pytest.raises(Mistake, match=r"handles a signal: .*signal\.signal.*use a time-out of the server"):
        trial([(redeems_in_time,)] * 2, setup=one_voucher)


@pytest.mark.parametrize(
    "clears",
    [
        lambda redis: redis.delete("vouchers"),
        lambda redis: redis.eval("return redis.call('DEL', 'vouchers')", 0),
    ],
)
def test_a_setup_that_only_clears_what_is_not_there(trial: Trial, clears: Callable[[Any], Any]) -> None:
    def redeems(redis: Any) -> bool:
        return bool(redis.set("vouchers", 1, nx=True))

    once = lambda *taken: sum(map(bool, taken)) == 1, "a voucher was used twice"
    assert trial([(redeems,)] * 2, setup=clears, invariant=once, control=False).verdict == "kept"


def test_a_setup_that_fails(trial: Trial) -> None:
    told = r"the setup raised ZeroDivisionError: division by zero \(.*test_mistakes.py:\d+: .*1 / 0"
    with pytest.raises(Mistake, match=told):
        trial(two(redeem), setup=lambda: 1 / 0)


def test_a_sentence_before_its_invariant(trial: Trial) -> None:
    with pytest.raises(Mistake, match="the callable comes first, and then the sentence"):
        trial(two(redeem), invariant="used twice")


def test_an_invariant_that_takes_too_many_results(trial: Trial) -> None:
    with pytest.raises(Mistake, match=r"takes 3 results, and there are 2 workers"):
        trial(two(redeem), setup=one_voucher, invariant=lambda a, b, c: True)


def test_an_invariant_that_takes_one_result_of_two(trial: Trial) -> None:
    """It was judged with the first one's, and nobody knew."""
    with pytest.raises(
        Mistake, match=r"takes 1 result, and there are 2 workers: .*\(lambda ann, bob: …; lambda \*re"
    ):
        trial(two(redeem), setup=one_voucher, invariant=lambda results: True)


@pytest.mark.parametrize(
    "invariant",
    [lambda *results: results.count("redeemed") < 2, lambda ann, *others: others != (ann,)],
)
def test_an_invariant_may_take_all_results_at_once(trial: Trial, invariant: Any) -> None:
    """It was asked with none of them, and held."""
    assert trial(two(redeem), setup=one_voucher, invariant=(invariant, "used twice")).sentence == "used twice"


def test_what_has_a_default_is_no_result(trial: Trial) -> None:
    """The default was lost, and the first result stood in its place."""
    taken: list[Any] = []
    trial(two(redeem), setup=one_voucher, invariant=lambda limit=1: taken.append(limit) or True)
    assert set(taken) == {1}


def test_one_result_by_its_workers_name(trial: Trial) -> None:
    taken: list[Any] = []
    trial(two(redeem), setup=one_voucher, invariant=lambda ann: taken.append(ann) or True)
    assert set(taken) == {"redeemed", "too late"}


async def a_coroutine() -> bool:
    return False


def test_the_words_of_an_assertion_are_shown(trial: Trial) -> None:
    def used_once() -> None:
        assert redemptions() == 1, f"redeemed {redemptions()} times\nand more"

    result = trial(two(redeem), setup=one_voucher, invariant=used_once, control=False)
    assert result.verdict == "violated"
    assert "used_once does not hold\n  redeemed 2 times\n" in str(result)


def test_an_invariant_that_cannot_answer_when_a_worker_has_failed(trial: Trial) -> None:
    def fails() -> None:
        raise ValueError("no such voucher")

    workers = [*two(redeem)[:1], worker("Bob", fails)]
    told = (
        r"raised AttributeError: .*also when a worker has failed \(Bob failed: ValueError: no such voucher\)"
    )
    with pytest.raises(Mistake, match=told):
        trial(workers, setup=one_voucher, invariant=lambda ann, bob: ann.left + bob.left == 0)


@pytest.mark.deep_after(5)
@pytest.mark.parametrize(
    ("invariant", "told"),
    [
        (lambda: (False,), r"returned \(False,\) \(tuple\), which is no answer"),
        (lambda: [False], r"returned \[False\] \(list\), which is no answer"),
        (lambda: redeem, r"returned <function redeem at .* \(function\), which is no answer"),
        (a_coroutine, r"is a coroutine, and nobody awaits it"),
    ],
)
@pytest.mark.parametrize("kind", ["invariant", "always"])
def test_an_answer_that_says_nothing(trial: Trial, invariant: Any, told: str, kind: str) -> None:
    """A row that was fetched, and a method that nobody called, are true: it was kept."""
    with pytest.raises(Mistake, match=told):
        trial(two(redeem), setup=one_voucher, **{kind: invariant})


def test_a_branch_that_forgets_its_answer(trial: Trial) -> None:
    """Nothing passes, as it has to for one that asserts: it was kept."""

    def used_once() -> Any:
        if redemptions() <= 1:
            return True
        return None

    with pytest.raises(Mistake, match="returned something once, and nothing another time, which would pass"):
        trial(two(redeem), setup=one_voucher, invariant=used_once)


@pytest.mark.parametrize("always", [lambda ann: True, lambda *results: True])
def test_results_at_a_commit(trial: Trial, always: Any) -> None:
    with pytest.raises(Mistake, match="is asked at each commit, when no worker has returned yet"):
        trial(two(redeem), setup=one_voucher, always=always)


@pytest.mark.parametrize("invariant", [lambda bob: True, lambda bob, ann: True, lambda _, ann: True])
def test_an_invariant_that_takes_a_result_by_another_workers_name(trial: Trial, invariant: Any) -> None:
    """It would be judged with the other one's result."""
    with pytest.raises(Mistake, match="it is called with the results in the order of the workers"):
        trial(two(redeem), setup=one_voucher, invariant=invariant)


@pytest.mark.deep
def test_an_invariant_that_never_holds(trial: Trial) -> None:
    with pytest.raises(
        Mistake, match=r"the invariant \(never\) is false at the start, and after every serial order"
    ):
        trial(two(redeem_locked), setup=one_voucher, invariant=(lambda: redemptions() > 7, "never"))


@pytest.mark.deep
def test_an_invariant_that_holds_at_the_end_only_is_none(trial: Trial) -> None:
    assert trial(two(redeem_locked), setup=one_voucher, invariant=lambda: redemptions() == 1).kept


def forgets_to_return() -> None:
    redemptions() == 1  # noqa: B015


def asserts_by_another_function() -> None:
    one_redemption()


def one_redemption() -> None:
    assert redemptions() == 1


@dataclass
class NeverBelow:
    """Two that are equal are one, so it has no hash."""

    floor: int

    def __call__(self) -> None:
        assert redemptions() >= self.floor


def test_an_object_that_asserts(trial: Trial) -> None:
    assert (
        trial(two(redeem_locked), setup=one_voucher, invariant=NeverBelow(0), control=False).verdict == "kept"
    )


def test_an_invariant_that_can_never_fail(trial: Trial) -> None:
    """It returned None, which passes for an assertion that holds: kept."""
    told = "returned nothing, and asserts nothing: no schedule can break it. Return whether it holds"
    with pytest.raises(Mistake, match=told):
        trial(two(redeem), setup=one_voucher, invariant=forgets_to_return)
    found = trial(two(redeem), setup=one_voucher, invariant=asserts_by_another_function, control=False)
    assert found.verdict == "violated"


@pytest.mark.parametrize(
    ("invariant", "told"),
    [
        (
            balance_conserved("nothing.n"),
            'balance_conserved cannot be asked: relation "nothing" does not exist',
        ),
        (never_below("voucher.price"), 'never_below cannot be asked: column "price" does not exist'),
    ],
)
def test_a_table_or_a_column_that_is_not_there(trial: Trial, invariant: Any, told: str) -> None:
    with pytest.raises(Mistake, match=f"{told}. Name a table, and columns, that the setup has made"):
        trial(two(redeem), setup=one_voucher, invariant=invariant)


def tops_up(sql: Any) -> None:
    sql.execute("UPDATE stock SET left_ = left_ + 1 WHERE id = 1")


def test_what_breaks_one_after_the_other_is_no_race(trial: Trial) -> None:
    result = trial([tops_up, tops_up], setup=three_rows, invariant=balance_conserved("stock.left_"))
    assert result.verdict == "violated"
    assert "the workers break it even one after the other, in every order: this is no race" in result.notes


def test_workers_that_are_no_list(trial: Trial) -> None:
    with pytest.raises(Mistake, match=r"takes a list of workers, .*: explore\(\[redeem, redeem\]\)"):
        trial(redeem, setup=one_voucher)


@pytest.mark.parametrize("address", ["sqlite:///shop.db", "postgresql+psycopg://me@localhost/shop_test"])
def test_an_address_of_something_else(trial: Trial, address: str) -> None:
    with pytest.raises(Mistake, match=r"is no address of PostgreSQL. One looks like postgresql://"):
        trial(two(redeem), setup=one_voucher, database=address)


def large_object(sql: Any) -> None:
    sql.execute("SELECT lo_create(0)")


def test_what_was_there_before_and_cannot_be_put_back(trial: Trial, scenario_urls: tuple[str, str]) -> None:
    """It ended in a traceback."""
    with psycopg.connect(scenario_urls[0], autocommit=True) as sql:
        large_object(sql)
        try:
            with pytest.raises(Mistake, match=r"large object.* no snapshot puts that back"):
                trial(two(redeem), setup=one_voucher)
        finally:
            sql.execute("SELECT lo_unlink(oid) FROM pg_largeobject_metadata")


def test_an_invariant_that_raises(trial: Trial) -> None:
    with pytest.raises(Mistake, match="raised ZeroDivisionError"):
        trial(two(redeem), setup=one_voucher, invariant=lambda: 1 / 0)


@pytest.mark.deep
def test_an_invariant_that_cannot_tell(trial: Trial) -> None:
    result = trial(two(redeem_locked), setup=one_voucher, invariant=(lambda: redemptions() < 3, "three"))
    assert result.verdict == "inconclusive"
    assert "the invariant cannot tell: it holds without FOR UPDATE, too" in result.cause


TAKE = "UPDATE stock SET left_ = left_ - 1 WHERE id = %s"


def takes_by_hand(first: list[int], then: list[int], sql: Any) -> None:
    """Takes one of each, of the third one by what it has read in between."""
    with sql.transaction():
        sql.execute("SELECT pg_advisory_xact_lock(1)")
        for number in first:
            sql.execute(TAKE, [number])
        (before,) = sql.execute("SELECT left_ FROM stock WHERE id = 3").fetchone()
        for number in then:
            sql.execute(TAKE, [number])
        sql.execute("UPDATE stock SET left_ = %s WHERE id = 3", [before - 1])


def three_rows(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS stock; CREATE TABLE stock (id int PRIMARY KEY, left_ int)")
    sql.execute("INSERT INTO stock VALUES (1, 5), (2, 5), (3, 5)")


def test_a_deadlock_does_not_hide_that_an_invariant_cannot_tell(trial: Trial) -> None:
    """Without the lock, a deadlock comes first. The control ended there, and never came to the lost update."""
    crossing = [worker("Ann", takes_by_hand, [2], [1]), worker("Bob", takes_by_hand, [], [1, 2])]
    result = trial(crossing, setup=three_rows, invariant=(lambda: True, "anything goes"))
    assert result.verdict == "inconclusive"
    assert "the invariant cannot tell: it holds without the advisory lock, too" in result.cause
    assert result.hazards == {"contention": "inconclusive"}


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (ValueError({"balance": ["too low"]}), False),
        (ValueError(["too low"]), False),
        (psycopg.errors.DeadlockDetected(), True),
        (pymysql.OperationalError(1213, "Deadlock found"), True),
    ],
)
def test_a_deadlock_is_known_by_its_code(error: Exception, word: bool) -> None:
    """Whatever an error has as its first argument, and whatever its causes are."""
    assert is_deadlock(error) == word
    error.__cause__ = RuntimeError()
    error.__cause__.__cause__ = error
    assert is_deadlock(error) == word


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("redis://:secret@127.0.0.1:1/0", "127.0.0.1:1/0: Error 111"),
        ("nonsense", "nonsense: Redis URL must specify"),
    ],
)
def test_a_redis_that_does_not_answer(trial: Trial, url: str, told: str) -> None:
    """Whose password is nobody's business."""
    with pytest.raises(Mistake, match=r"Redis cannot be used at .* unset REDIS_URL") as raised:
        trial(two(redeem), setup=one_voucher, redis=url)
    assert told in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_server_that_is_too_old(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "OLDEST", 990_000)
    with pytest.raises(Mistake, match=r"PostgreSQL 99 or newer is needed, this is \d\d"):
        trial(two(redeem), setup=one_voucher)


def add_under_a_lock(redis: Any) -> None:
    if redis.set("lock", 1, nx=True, px=5000):
        redis.incr("count")
        redis.delete("lock")


@pytest.mark.deep
def test_the_control_takes_locks_in_redis_too(trial: Trial) -> None:
    result = trial([add_under_a_lock, add_under_a_lock], invariant=lambda: True)
    assert "without SET NX, too, no order breaks it" in result.notes[0]


@pytest.mark.deep
def test_operations_that_touch_nothing(trial: Trial) -> None:
    result = trial([lambda: 1, lambda: 2])
    assert result.verdict == "inconclusive"
    assert "never overlapped" in result.cause


def at_most_once(redis: Any) -> bool:
    """The one that comes second needs one command more."""
    if redis.incr("count") == 1:
        return True
    redis.decr("count")
    return False


def test_operations_between_whose_commands_none_can_come(trial: Trial) -> None:
    result = trial([at_most_once, at_most_once], invariant=lambda one, other: one != other, control=False)
    assert (result.verdict, result.exhausted) == (KEPT, True), str(result)


def waits_for_news(sql: Any) -> list[Any]:
    sql.execute("LISTEN news")
    return list(sql.notifies(timeout=5, stop_after=1))


def test_notifications_are_not_judged(trial: Trial) -> None:
    """Else they would be said to keep the server busy."""
    with pytest.raises(Mistake, match=r"no gate for psycopg's notifies\(\)"):
        trial([waits_for_news, lambda sql: sql.execute("NOTIFY news")])


#: no plain value: those are put back (test_fresh_process.py)
COUNTS = Counter({"calls": 0})


@pytest.mark.deep
def test_a_module_that_remembers(trial: Trial) -> None:
    def counts(code: str, customer: int, sql: Any) -> None:
        COUNTS["calls"] += 1
        sql.execute("UPDATE voucher SET uses = uses - %s WHERE code = %s", [COUNTS["calls"], code])

    told = rf"not repeatable: run twice in the same order.* survives: {__name__}.COUNTS\['calls'\]\."
    with pytest.raises(Mistake, match=told):
        trial(two(counts), setup=one_voucher)


@pytest.mark.deep
def test_state_that_decides_nothing_is_reported(trial: Trial) -> None:
    def counted(code: str, customer: int, sql: Any) -> str:
        COUNTS["calls"] += 1
        return redeem_locked(code, customer, sql)

    result = trial(two(counted), setup=one_voucher)
    assert result.kept
    assert f"{__name__}.COUNTS['calls'] is not the same after each schedule" in result.notes[0]


def test_large_objects(trial: Trial) -> None:
    def with_a_picture() -> None:
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
            connection.execute("SELECT lo_create(4711)")

    with pytest.raises(Mistake, match="the database holds large objects: no snapshot puts that back"):
        trial(two(redeem), setup=with_a_picture)
    with psycopg.connect(trial.keywords["database"]) as connection:  # type: ignore[attr-defined]
        assert not connection.execute("SELECT FROM pg_largeobject_metadata").fetchall(), (
            "the next trial begins"
        )


def test_a_database_that_is_no_test_database(trial: Trial) -> None:
    with pytest.raises(
        Mistake, match="the database 'scenarios' is not touched: its name says nothing of a test"
    ):
        trial(two(redeem), setup=one_voucher, disposable=False)


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        *(
            (name, True)
            for name in ("test", "test_shop", "shop_test", "shop-tests", "test_shop_gw0", "TEST", "test2")
        ),
        *((name, False) for name in ("latest_orders", "contest", "attestation", "testimonials", "shop")),
    ],
)
def test_the_word_test_makes_a_test_database(
    name: str, is_one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LOST_UPDATE_LAB_DISPOSABLE", raising=False)
    with nullcontext() if is_one else pytest.raises(Mistake, match="its name says nothing of a test"):
        servers.may_be_written(name, disposable=False)


def test_a_database_called_contest_is_not_touched(trial: Trial) -> None:
    with psycopg.connect(trial.keywords["database"], autocommit=True) as connection:  # type: ignore[attr-defined]
        connection.execute("CREATE DATABASE contest")
        try:
            url = trial.keywords["database"].replace("/scenarios", "/contest")  # type: ignore[attr-defined]
            with pytest.raises(Mistake, match="the database 'contest' is not touched"):
                trial(two(redeem), setup=one_voucher, database=url, disposable=False)
        finally:
            connection.execute("DROP DATABASE contest WITH (FORCE)")


def test_a_database_shared_by_processes_of_xdist(monkeypatch: pytest.MonkeyPatch) -> None:
    from lost_update_lab.under_test.servers import choose

    monkeypatch.setenv("DATABASE_URL", "postgresql://somewhere/test_shop")
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    with pytest.raises(Mistake, match="pytest-xdist runs tests side by side"):
        choose()


def test_a_redis_that_holds_something(trial: Trial) -> None:
    url = trial.keywords["redis"].replace("db=0", "db=9")  # type: ignore[attr-defined]
    with redis.Redis.from_url(url) as client:
        client.set("theirs", 1)
        try:
            with (
                pytest.raises(Mistake, match="the Redis holds 1 keys and is not touched"),
                _test_database(trial),
            ):
                trial(two(redeem), redis=url, disposable=False)
            assert client.keys() == [b"theirs"]
        finally:
            client.flushdb()


@contextmanager
def _test_database(trial: Trial) -> Iterator[None]:
    """One whose name says so is allowed; then Redis is asked."""
    known = trial.keywords["database"]  # type: ignore[attr-defined]
    with psycopg.connect(known, autocommit=True) as connection:
        connection.execute("CREATE DATABASE test_mistakes")
        trial.keywords["database"] = known.replace("/scenarios?", "/test_mistakes?")  # type: ignore[attr-defined]
        try:
            yield
        finally:
            connection.execute("DROP DATABASE test_mistakes WITH (FORCE)")


@pytest.mark.deep
def test_an_operation_that_hangs(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hang, "STANDS_WITHIN", 0.5)
    ours, _theirs = socket.socketpair()
    with pytest.raises(
        Mistake, match=r"A waits in something that the explorer does not see: test_mistakes.py, line"
    ):
        trial([lambda: ours.recv(1)] * 2)


@pytest.mark.deep
def test_a_lock_of_this_process(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hang, "STANDS_WITHIN", 0.5)
    (mutex := threading.Lock()).acquire()
    with pytest.raises(
        Mistake, match=r"workers stand for processes.*use what all processes share: a lock in the data"
    ):
        trial([lambda: mutex.acquire()] * 2)


MUTEX, SLOTS = threading.Lock(), threading.Semaphore(1)


class Busy(Exception):
    """Another one is at work."""


def if_it_is_free(guard: Any, redis: Any) -> None:
    redis.get("user")
    if not guard.acquire(blocking=False):
        raise Busy
    try:
        redis.set("count", int(redis.get("count") or 0) + 1)
    finally:
        guard.release()


def if_the_mutex_is_free(redis: Any) -> None:
    if_it_is_free(MUTEX, redis)


def if_a_slot_is_free(redis: Any) -> None:
    if_it_is_free(SLOTS, redis)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("operation", "name"),
    [
        (if_the_mutex_is_free, f"{__name__}.MUTEX"),
        (if_a_slot_is_free, f"{__name__}.SLOTS"),
        (partial(if_it_is_free, threading.RLock()), "A's argument 1"),
    ],
)
def test_a_lock_of_this_process_that_nobody_waits_for(
    trial: Trial, operation: Callable[..., None], name: str
) -> None:
    """Between two processes it is free, and after a schedule too. Only a look in between shows it."""
    result = trial([operation] * 2, refusals=[Busy], control=False)
    assert result.verdict == "inconclusive"
    assert "the operations hold a lock of this process" in result.cause
    assert name in result.cause
    assert result.remedy == "use what all processes share: a lock in the database, or in Redis"


def test_an_operation_that_forks(trial: Trial) -> None:
    """A server that was forked is none that the explorer sees."""

    def forks() -> None:
        if not os.fork():
            os._exit(0)

    with pytest.raises(
        Mistake, match=r"it forks another process, whose commands pass no gate. The remedy: let the w"
    ):
        trial([forks, forks])


def test_an_operation_that_ends_its_process(trial: Trial) -> None:
    """The explorer ended with it, without a word."""
    with pytest.raises(
        Mistake, match=r"it ends its process by os\._exit.* The remedy: let it raise an exception"
    ):
        trial([lambda: os._exit(7)] * 2)


@pytest.mark.parametrize("how", multiprocessing.get_all_start_methods())
def test_an_operation_that_starts_another_process(trial: Trial, how: str) -> None:
    """Also while the process has other children."""
    here = multiprocessing.get_context(how)
    told = r"it starts another process by multiprocessing, whose commands pass no gate. The remedy: let the w"
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE), pytest.raises(Mistake, match=told):
        trial([lambda: here.Process(target=print).start()] * 2)


def test_a_server_of_another_process(trial: Trial) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with pytest.raises(
            Mistake, match=f"it talks to 127.0.0.1:{address[1]}, and the explorer was given no server"
        ):
            trial([lambda: socket.create_connection(address)] * 2)


def test_a_forked_process_has_servers_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "_embedded", {"DATABASE_URL": "postgresql://parent"})
    monkeypatch.setattr(servers, "_owners", [os.getpid()])
    assert servers.embedded_already("DATABASE_URL") == "postgresql://parent"
    told = multiprocessing.get_context("fork").SimpleQueue()
    child = multiprocessing.get_context("fork").Process(
        target=lambda: told.put(servers.embedded_already("DATABASE_URL"))
    )
    child.start()
    assert told.get() == ""
    child.join()


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["psycopg_pool", "redis"])
def test_a_pool_that_is_too_small(trial: Trial, kind: str) -> None:
    if kind == "redis":
        small = redis.ConnectionPool.from_url(trial.keywords["redis"], max_connections=1)  # type: ignore[attr-defined]

        def both() -> None:
            with redis.Redis(connection_pool=small).pubsub() as listening:
                listening.subscribe("news")
                redis.Redis(connection_pool=small).set("k", 1)
    else:
        pool = psycopg_pool.ConnectionPool(trial.keywords["database"], min_size=0, max_size=1, open=False)  # type: ignore[attr-defined]

        def both() -> None:
            with pool.connection(), pool.connection() as second:
                second.execute("SELECT 1")

    told = {"psycopg_pool": "the pool is too small.*Give it max_size=2", "redis": "Too many connections"}
    with pytest.raises(Mistake, match=f"A fails in every order.*{told[kind]}"):
        trial([both, both])


def test_no_server(trial: Trial) -> None:
    with pytest.raises(Mistake, match="no PostgreSQL answers at the given address"):
        trial(two(redeem), database="postgresql://127.0.0.1:1/test")


def test_a_lock_of_asyncio_that_workers_share(trial: Trial) -> None:
    """Each has an event loop of its own. It was said of the second one that it fails even when it runs alone."""
    shared = asyncio.Lock()

    async def redeems_in_turn() -> None:
        async with shared:
            await asyncio.sleep(0.001)

    with pytest.raises(Mistake, match=r"uses an object of asyncio that another worker has used before"):
        trial([redeems_in_turn, redeems_in_turn], setup=one_voucher)


def test_one_that_waits_for_itself(trial: Trial) -> None:
    def redeems_twice_at_a_time() -> None:
        with (
            psycopg.connect(os.environ["DATABASE_URL"]) as one,
            psycopg.connect(os.environ["DATABASE_URL"]) as other,
        ):
            for connection in (one, other):
                connection.execute("UPDATE voucher SET uses = uses - 1")

    with pytest.raises(Mistake, match="unless that is a lock: then another connection of its own holds it"):
        trial([redeems_twice_at_a_time] * 2, setup=one_voucher)
