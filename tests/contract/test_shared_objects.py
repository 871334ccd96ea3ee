"""One lock object in several hands: threads that share it, and forked children that copy it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import portalocker
import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from locks import LOCKS, LockLost, LockNotHeld, LockUnavailable
from locks.file_lock import FileLock
from locks.timing import poll_until
from tests.contract.arena import Arena
from tests.contract.fight import Fight
from tests.contract.site import UNHURRIED

MENDED, REDLOCK_REENTRANT = LOCKS["reentrant-mended"], LOCKS["redlock-reentrant"]


def elsewhere(action: Callable[[], Any]) -> Any:
    """What comes of it in another thread."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(action).result()


def in_a_child(action: Callable[[], Any]) -> bool:
    """Was what it returned in a forked child true? False too when it raised."""
    child = os.fork()
    if not child:
        try:
            os._exit(not action())
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def until_a_number_comes_again(action: Callable[[], Any]) -> list[Any]:
    """What came of it in one thread, and in a later one that has the number of the first, which is dead. The threads
    between do nothing: one that the action starts could take that number, and keep it."""
    numbers: list[int] = []
    came: list[Any] = []

    def run() -> None:
        numbers.append(threading.get_ident())
        if numbers[0] == numbers[-1]:
            came.append(action())

    while len(came) < 2:
        assert len(numbers) < 10_000, "no thread gets the number of the first one"
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    return came


@pytest.mark.parametrize("lock", [MENDED, REDLOCK_REENTRANT], ids=lambda lock: lock.slug)
def test_a_new_thread_with_a_dead_threads_number_is_another_holder(arena: Arena, lock: Any) -> None:
    with arena.fight(lock, lease=UNHURRIED) as fight:
        assert until_a_number_comes_again(fight.party().gets_in) == [True, False]


@pytest.mark.parametrize("lock", [MENDED, REDLOCK_REENTRANT], ids=lambda lock: lock.slug)
def test_a_forked_child_is_another_holder(arena: Arena, lock: Any) -> None:
    with arena.fight(lock, lease=UNHURRIED) as fight:
        holder = fight.holder()
        assert in_a_child(lambda: not holder.lock.acquire(timeout=0)), "the child is inside as well"
        first = holder.lock.token
        holder.lock.release()
        assert holder.lock.acquire(timeout=0)
        assert lock is not MENDED or holder.lock.token != first, "a late release would end this holding"
        assert in_a_child(lambda: not holder.lock.held), "the child believes that it holds it"
        holder.lock.release()


def test_mended_each_thread_of_a_shared_object_learns_of_its_own_loss(arena: Arena) -> None:
    """Also if another thread got in through the same object meanwhile, and also that one's holding is its own."""
    with arena.fight(MENDED, lease=10.0) as fight, ThreadPoolExecutor(max_workers=1) as thread:
        lock = fight.holder().lock
        lost = lock.token
        fight.forgets()
        assert thread.submit(lock.acquire, 0).result()
        assert lock.token == lost
        with pytest.raises(LockLost):
            lock.extend()
        assert not lock.held
        assert thread.submit(lambda: lock.held).result()
        with pytest.raises(LockLost):
            lock.release()
        with pytest.raises(LockNotHeld):
            lock.release()
        thread.submit(lock.release).result()
        assert not arena.keys(fight.name)


def test_mended_holds_nothing_after_a_nested_release_reported_the_loss(arena: Arena) -> None:
    with arena.fight(MENDED, lease=10.0) as fight:
        holder = fight.holder()
        assert holder.gets_in()
        fight.forgets()
        with pytest.raises(LockLost):
            holder.lock.release()
        assert not holder.lock.held


def test_mended_takes_nothing_when_no_thread_can_renew_it(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with arena.fight(MENDED, lease=10.0) as fight:
        party = fight.party()
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuses)
            with pytest.raises(RuntimeError):
                party.lock.acquire(timeout=0)
        assert not party.lock.held
        assert not arena.keys(fight.name), "nobody was told that it is held, and it is"
        with party.lock:
            assert party.lock.held
        assert not arena.keys(fight.name)


@pytest.mark.parametrize("lock", [MENDED, REDLOCK_REENTRANT], ids=lambda lock: lock.slug)
def test_reentrant_by_the_thread_that_is_inside_alone(arena: Arena, lock: Any) -> None:
    with arena.fight(lock, lease=UNHURRIED) as fight:
        holder = fight.holder()
        for use in (holder.lock.release, holder.lock.extend):
            with pytest.raises(LockNotHeld):
                elsewhere(use)
        assert holder.gets_in()
        for _ in range(2):
            assert holder.lock.held
            holder.lock.release()
        assert not holder.lock.held


def test_redlock_reentrant_starts_counting_again_after_a_loss(arena: Arena) -> None:
    with arena.fight(REDLOCK_REENTRANT, lease=UNHURRIED) as fight:
        holder = fight.holder()
        fight.forgets()
        with pytest.raises(LockLost):
            holder.lock.extend()
        with holder.lock:
            assert holder.lock.held
        assert not holder.lock.held
        with pytest.raises(LockNotHeld):
            holder.lock.release()


@pytest.mark.parametrize("use", ["release", "extend"])
def test_redlock_reentrant_each_thread_learns_of_its_own_loss(arena: Arena, use: str) -> None:
    """Not that it never held it, when another thread got in through the same object meanwhile."""
    with (
        arena.fight(REDLOCK_REENTRANT, lease=UNHURRIED) as fight,
        ThreadPoolExecutor(max_workers=1) as thread,
    ):
        lock = fight.holder().lock
        lost = lock.token
        fight.forgets()
        assert thread.submit(lock.acquire, 0).result()
        assert lock.token == lost
        with pytest.raises(LockLost):
            getattr(lock, use)()
        assert not lock.held
        assert thread.submit(lambda: lock.held).result()
        thread.submit(lock.release).result()
        assert not arena.keys(fight.name)


@pytest.fixture(params=["redis-py", "django-redis"])
def adapted(arena: Arena, request: pytest.FixtureRequest) -> Any:
    with arena.fight(LOCKS[request.param], lease=UNHURRIED) as fight:
        yield fight


def test_an_adapted_lock_in_another_thread_than_its_makers(adapted: Fight) -> None:
    shared = adapted.holder()

    def not_inside() -> None:
        assert not shared.lock.held
        assert shared.lock.token is None
        assert not shared.gets_in()
        for use in (shared.lock.release, shared.lock.extend):
            with pytest.raises(LockNotHeld):
                use()

    elsewhere(not_inside)
    assert shared.lock.held
    shared.lock.extend()
    shared.lock.release()


def test_an_adapted_lock_whose_release_found_no_server_is_not_held(adapted: Fight) -> None:
    holder = adapted.holder()
    holder.lock._lock.redis = Redis(port=1, retry=Retry(NoBackoff(), 0))
    with pytest.raises(LockUnavailable):
        holder.lock.release()
    assert not holder.lock.held
    assert holder.lock.token is None


def test_an_adapted_lock_that_could_not_be_extended_is_not_held(adapted: Fight) -> None:
    holder = adapted.holder()
    adapted.forgets()
    with pytest.raises(LockLost):
        holder.lock.extend()
    assert not holder.lock.held
    with pytest.raises(LockNotHeld):
        holder.lock.extend()


def test_an_adapted_lock_without_a_lease_has_none_to_extend(adapted: Fight) -> None:
    endless = adapted.party(lease=None)
    with pytest.raises(LockNotHeld):
        endless.lock.extend()
    assert endless.gets_in()
    with pytest.raises(NotImplementedError, match="without a lease"):
        endless.lock.extend()
    assert endless.lock.held
    endless.lock.release()


def test_a_file_is_locked_by_one_of_two_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have seen that the object has no file open before one of them locks it."""
    lock, asks, both = FileLock("x", directory=tmp_path), portalocker.Lock.acquire, threading.Barrier(2)

    def acquire(self: Any, *args: Any, **options: Any) -> Any:
        both.wait()
        return asks(self, *args, **options)

    with monkeypatch.context() as patch, ThreadPoolExecutor(max_workers=2) as threads:
        patch.setattr(portalocker.Lock, "acquire", acquire)
        asked = [threads.submit(lock.acquire, timeout=0) for _ in range(2)]
        assert sum(each.result() for each in asked) == 1
    lock.release()
    assert lock.acquire(timeout=0)
    lock.release()


def test_a_file_lock_is_its_process_own(tmp_path: Path) -> None:
    lock, other = FileLock("x", directory=tmp_path), FileLock("x", directory=tmp_path)
    assert lock.acquire()

    def child() -> bool:
        assert not lock.held
        with pytest.raises(LockNotHeld):
            lock.release()
        return not lock.acquire(timeout=0)

    assert in_a_child(child)
    assert lock.held
    assert not other.acquire(timeout=0), "the child released its parent's lock"
    lock.release()
    assert other.acquire(timeout=0), "the child is gone, and the release frees it"
    other.release()


def test_a_release_frees_a_file_that_a_child_has_open(tmp_path: Path) -> None:
    lock, other = FileLock("x", directory=tmp_path), FileLock("x", directory=tmp_path)
    assert lock.acquire()
    hears, says = os.pipe()
    child = os.fork()
    if not child:
        os.close(says)
        os.read(hears, 1)  # until its parent has tried
        os._exit(0)
    os.close(hears)
    lock.release()
    freed = other.acquire(timeout=0)
    os.close(says)
    os.waitpid(child, 0)
    assert freed


def test_a_file_that_a_dead_holders_child_has_open_is_free_with_the_child(tmp_path: Path) -> None:
    lock, other = FileLock("x", directory=tmp_path), FileLock("x", directory=tmp_path)
    hears, says = os.pipe()
    holder = os.fork()
    if not holder:
        lock.acquire()
        if not os.fork():
            os.close(says)
            os.read(hears, 1)  # the holder's child lives until it is told to end
        os._exit(0)
    os.waitpid(holder, 0)
    assert not other.acquire(timeout=0), "its holder is dead, and a child has its file open"
    os.close(says)
    assert poll_until(lambda: other.acquire(timeout=0), 0.01, 60)
    other.release()
    os.close(hears)
