"""The lock tables' published flaws, each made to happen, and the mended form that has not got them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from threading import Barrier, BrokenBarrierError
from typing import Any
from uuid import uuid4

import pytest
from django.db import InterfaceError, OperationalError, connections, transaction
from django.db.models import QuerySet

from ledger.books import open_book
from ledger.lock_tables import LOCK_TABLES, TableLock
from ledger.lock_tables.centre_lock import CentreLock
from ledger.models import LockRecord
from ledger.posting import Busy
from locks import LockLost, LockNotHeld, LockUnavailable, build
from tests.ledger.race import Race
from tests.ledger.race.books import assert_lost
from tests.ledger.race.worker import Worker

pytestmark = pytest.mark.usefixtures("committed_db")
ON_BOTH = pytest.mark.parametrize("store", ["postgres", "mariadb"], indirect=True)
ON_MARIADB = pytest.mark.parametrize("store", ["mariadb"], indirect=True)
LEASED = ["centre-lock", "segmented-lock"]


def alias(store: str) -> str:
    return "mariadb" if store == "mariadb" else "default"


def end_lease(race: Race, slug: str) -> None:
    """The time of the lease is over, by the database's clock and by everyone's."""
    records = LockRecord.objects.using(alias(race.book.store))
    assert records.filter(name=f"{slug}:{race.book.pk}:A").update(deadline="2000-01-01T00:00Z") == 1


@pytest.mark.parametrize("slug", ["insert-lock", "lock-table", "centre-lock", "segmented-lock"])
@ON_BOTH
def test_a_crash_locks_for_ever_or_for_a_year(slug: str, store: str) -> None:
    with Race(slug, store=store, timeout=0.1) as race:
        a, b = race.worker("A", +10).runs_to("think"), race.worker("B", +20)
        a.dies()
        b.fails(Busy)
        assert race.balance() == 100


@pytest.mark.parametrize("slug", [*LEASED, "segmented-lock-mended"])
@ON_BOTH
def test_a_crashed_holders_lease_ends(slug: str, store: str) -> None:
    with Race(slug, store=store) as race:
        a, b = race.worker("A", +10).runs_to("think"), race.worker("B", +20)
        a.dies()
        end_lease(race, slug)
        b.finishes()
        assert (race.balance(), race.kept()) == (120, True)


@pytest.mark.parametrize("slug", [*LEASED, "segmented-lock-mended"])
@ON_BOTH
def test_an_overrun_overwrites_the_successor(slug: str, store: str) -> None:
    with Race(slug, store=store) as race:
        a, b = race.worker("A", +10).runs_to("think"), race.worker("B", +20)
        end_lease(race, slug)
        b.finishes()
        warned = a.finishes().warning
        assert ("LockLost" in warned) == slug.endswith("mended")
        assert_lost(race, 20, by="A")


@pytest.mark.parametrize("slug", LEASED)
@ON_BOTH
def test_a_release_by_name_frees_the_successors_lock(slug: str, store: str) -> None:
    with Race(slug, store=store) as race:
        c = _overrun(race, slug)
        c.runs_to("think")  # though B is inside
        race.workers[1].finishes()
        c.finishes()
        assert_lost(race, 20, by="C")


@ON_BOTH
def test_with_an_owner_the_successor_keeps_its_lock(store: str) -> None:
    with Race("segmented-lock-mended", store=store) as race:
        c = _overrun(race, "segmented-lock-mended")
        c.waits()
        race.workers[1].finishes()
        c.finishes()


def _overrun(race: Race, slug: str) -> Worker:
    """A overruns, B takes the lock and reads, A ends. Returns C."""
    a, b, c = race.worker("A", +10), race.worker("B", +20), race.worker("C", +30)
    a.runs_to("think")
    end_lease(race, slug)
    b.runs_to("think")
    a.finishes()
    return c


@ON_MARIADB
def test_gap_locks_deadlock_with_error_1213(store: str) -> None:
    level = {"extra": {"isolation": "REPEATABLE READ"}}
    with Race("lock-table", store=store, **level) as race:
        a, b = race.worker("A", +10), race.worker("B", +20)
        a.runs_to("sql INSERT INTO `ledger_lockrecord`")
        b.runs_to("sql INSERT INTO `ledger_lockrecord`")  # both have locked the gap where the row would be
        for worker in (a, b):
            worker.tries("think")
        (loser,) = [worker for worker in (a, b) if worker.error]
        assert isinstance(loser.error, Busy)
        assert "1213" in str(loser.error)
        (b if loser is a else a).finishes()
        assert race.kept()


@ON_MARIADB
def test_under_read_committed_the_second_one_waits_for_the_first(store: str) -> None:
    with Race("lock-table", store=store) as race:
        a, b = race.worker("A", +10), race.worker("B", +20)
        a.runs_to("sql INSERT INTO `ledger_lockrecord`")
        b.runs_to("sql INSERT INTO `ledger_lockrecord`")
        a.runs_to("think")
        b.waits()  # error 1062 became "not granted"
        a.finishes()
        b.finishes()
        assert race.kept()


@ON_BOTH
def test_version_1_keeps_its_row_and_updates_it(store: str, request: pytest.FixtureRequest) -> None:
    lock = LOCK_TABLES["lock-table"](f"kept-{id(request)}", sql=alias(store))
    records = LockRecord.objects.using(alias(store)).filter(name=lock.name)
    numbers = set()
    for _ in range(2):
        with lock:
            numbers.add(records.get(status=LockRecord.Status.LOCKED).pk)
    assert numbers == {records.get(status=LockRecord.Status.FREE).pk}


@ON_MARIADB
def test_a_counter_that_is_not_there_yet_deadlocks_too(store: str, request: pytest.FixtureRequest) -> None:
    """E8, problem 4: two callers count under a new name as version 1 takes its lock."""
    name, both_looked = f"count-{id(request)}", Barrier(2)

    def count() -> str:
        records = LockRecord.objects.using("mariadb")
        with closing(connections["mariadb"]) as connection:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            try:
                with transaction.atomic(using="mariadb"):
                    found = records.select_for_update().filter(name=name).first()
                    both_looked.wait(20)
                    assert found is None
                    records.create(name=name, count=1)
            except OperationalError as error:
                return str(error)
        return "counted"

    with ThreadPoolExecutor(2) as pool:
        told = sorted(each.result() for each in [pool.submit(count) for _ in range(2)])
    assert told[1] == "counted"
    assert "1213" in told[0]


class PseudoCode(CentreLock):
    """E10 as the article's pseudo-code has it: the central row is selected without FOR UPDATE."""

    def lock_centre(self) -> None:
        self.records.get(name=self.centre)


@pytest.mark.parametrize("lock", [PseudoCode, CentreLock])
@ON_BOTH
def test_without_for_update_on_the_central_row_both_get_the_lock(
    lock: type[CentreLock], store: str, request: pytest.FixtureRequest
) -> None:
    """Both are to have looked before either writes. Behind a locked central row they cannot: the barrier breaks."""
    name, both_looked = f"pseudo-{id(request)}", Barrier(2)
    with lock(name, sql=alias(store)):
        pass  # the record is there, and free

    def meet(execute: Any, sql: str, *more: Any) -> Any:
        if sql.startswith("UPDATE"):
            with suppress(BrokenBarrierError):
                both_looked.wait(0.3 if lock is CentreLock else 20)
        return execute(sql, *more)

    def take() -> bool:
        with closing(connections[alias(store)]) as connection, connection.execute_wrapper(meet):
            return lock(name, sql=alias(store)).acquire(timeout=0)

    with ThreadPoolExecutor(2) as pool:
        got = [each.result() for each in [pool.submit(take) for _ in range(2)]]
    assert sum(got) == (2 if lock is PseudoCode else 1)


def in_another_session(store: str, work: Callable[[], bool]) -> bool:
    def thread() -> bool:
        with closing(connections[alias(store)]):
            return work()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(thread).result(20)


def lock_of(slug: str, store: str, name: str, **options: object) -> TableLock:
    return LOCK_TABLES[slug](name, sql=alias(store), lease=60.0, **options)


@pytest.mark.parametrize("slug", LEASED)
@ON_MARIADB
def test_in_a_callers_transaction_two_sessions_both_acquire(
    slug: str, store: str, request: pytest.FixtureRequest
) -> None:
    """ATOMIC_REQUESTS under MySQL's own level: the view has read something before it takes the lock."""
    name = f"stale-{slug}-{id(request)}"
    with lock_of(slug, store, name):
        pass  # the record is there, and free
    first, second = lock_of(slug, store, name), lock_of(slug, store, name)
    with ExitStack() as stack:
        _atomic_request(stack, store)
        assert in_another_session(store, lambda: first.acquire(timeout=0))  # and goes on working
        assert second.acquire(timeout=0)  # the plain SELECT saw the record as it was at the view's first read
        assert first.held
        assert second.held


@ON_MARIADB
def test_mended_refuses_to_be_taken_in_a_callers_transaction(store: str) -> None:
    with ExitStack() as stack:
        _atomic_request(stack, store)
        with pytest.raises(RuntimeError, match="take the lock around it"):
            lock_of("segmented-lock-mended", store, "n").acquire(timeout=0)


def _atomic_request(stack: ExitStack, store: str) -> None:
    """What ATOMIC_REQUESTS does, on a connection at MySQL's default level, and the view's first read."""
    with connections[alias(store)].cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    stack.enter_context(transaction.atomic(using=alias(store)))
    assert LockRecord.objects.using(alias(store)).exists()


@pytest.mark.parametrize("slug", LEASED)
@ON_BOTH
def test_taking_the_lock_resets_the_shared_counter(
    slug: str, store: str, request: pytest.FixtureRequest
) -> None:
    name = f"counter-{slug}-{id(request)}"
    first, second = lock_of(slug, store, name), lock_of(slug, store, name)
    record = LockRecord.objects.using(alias(store)).filter(name=first.name)
    assert first.acquire(timeout=0)
    record.update(count=7)  # another client keeps a counter under the name of the lock
    assert not second.acquire(timeout=0)
    assert record.get().count == 7, "a caller that is refused writes nothing"
    first.release()
    assert second.acquire(timeout=0)
    assert record.get().count == 0


@ON_BOTH
def test_a_year_is_the_lease_where_none_is_given(store: str, request: pytest.FixtureRequest) -> None:
    lock = LOCK_TABLES["centre-lock"](f"year-{id(request)}", sql=alias(store))
    with lock:
        record = LockRecord.objects.using(alias(store)).get(name=lock.name)
        assert record.deadline is not None
        assert 364 <= (record.deadline - record.created).days <= 366


@ON_BOTH
def test_mended_says_when_it_was_lost(store: str, request: pytest.FixtureRequest) -> None:
    name = f"lost-{id(request)}"
    first, second = (lock_of("segmented-lock-mended", store, name) for _ in range(2))
    assert first.acquire(timeout=0)
    assert not second.acquire(timeout=0)
    first.extend()
    LockRecord.objects.using(alias(store)).filter(name=first.name).update(deadline="2000-01-01T00:00Z")
    assert second.acquire(timeout=0)
    with pytest.raises(LockLost):
        first.extend()
    with pytest.raises(LockLost):
        first.release()
    second.release()


@ON_BOTH
def test_mended_is_held_until_its_release(store: str, request: pytest.FixtureRequest) -> None:
    lock = lock_of("segmented-lock-mended", store, f"told-{id(request)}")
    for _ in range(2):
        for use in (lock.release, lock.extend):
            with pytest.raises(LockNotHeld):
                use()
        with lock:
            assert lock.token
        assert lock.token is None


def lose_the_reply(lock: TableLock, patch: pytest.MonkeyPatch) -> None:
    """To the next COMMIT: it was carried out."""
    connection = connections[lock.sql]
    commit = connection.commit

    def commits() -> None:
        commit()
        raise OperationalError("the connection was lost")

    patch.setattr(connection, "commit", commits)


@ON_BOTH
def test_mended_frees_a_lock_whose_grant_it_never_received(
    store: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, other = (lock_of("segmented-lock-mended", store, f"unheard-{id(request)}") for _ in range(2))
    with monkeypatch.context() as patch:
        lose_the_reply(lock, patch)
        with pytest.raises(LockUnavailable, match="connection was lost"):
            lock.acquire(timeout=0)
    assert not lock.held
    assert lock.token is None
    assert other.acquire(timeout=0)  # 60 s before the lease would have ended it
    with monkeypatch.context() as patch:
        lose_the_reply(lock, patch)
        with pytest.raises(LockUnavailable):
            lock.acquire(timeout=0)
    other.extend()  # it is its own still
    other.release()


@pytest.mark.parametrize("slug", LOCK_TABLES)
@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
def test_a_database_that_is_down_at_the_release_is_reported(
    slug: str, error: type[Exception], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = build(LOCK_TABLES[slug], f"away-{id(request)}", sql="default", lease=60.0)

    def away(*_: object, **__: object) -> None:
        raise error("gone")

    assert lock.acquire(timeout=0)
    with monkeypatch.context() as patch:
        patch.setattr(QuerySet, "update", away)
        patch.setattr(QuerySet, "delete", away)
        if slug.endswith("mended"):
            with pytest.raises(LockUnavailable, match="gone"):
                lock.extend()
        with pytest.raises(LockUnavailable, match="gone"):
            lock.release()
    assert not lock.held
    LockRecord.objects.filter(name=lock.name).delete()


def test_a_level_comes_from_a_list() -> None:
    with pytest.raises(ValueError, match="REPEATABLE READ"):
        LOCK_TABLES["lock-table"]("n", isolation="READ COMMITTED; DROP TABLE ledger_book")


def test_a_database_that_is_down_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = LOCK_TABLES["lock-table"]("n")

    def away() -> bool:
        raise OperationalError("gone")

    monkeypatch.setattr(lock, "attempt", away)
    with pytest.raises(LockUnavailable, match="gone"):
        lock.acquire(timeout=0)


@ON_MARIADB
def test_a_book_on_mariadb_belongs_to_the_default_database(store: str) -> None:
    book = open_book("no-lock", [("A", 1, None)], store=store)
    assert book._state.db == "default"  # what refers to it, as a trial's result, is there


@ON_MARIADB
def test_mended_knows_no_time_zones(store: str) -> None:
    """A session whose clock is five hours ahead: by it, every lease is over."""
    name = f"zones-{uuid4()}"
    first, second = (lock_of("segmented-lock-mended", store, name) for _ in range(2))
    assert first.acquire(timeout=0)
    with connections["mariadb"].cursor() as cursor:
        cursor.execute("SET time_zone = '+05:00'")
    try:
        assert not second.acquire(timeout=0)
    finally:
        connections["mariadb"].close()
    first.release()
