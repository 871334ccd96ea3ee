"""Renewal of fair locks: it keeps what is held, ends with the release, and says what was lost."""

import gc
import os
import signal
import threading
import time
from types import SimpleNamespace

import pytest

from locks.errors import LockLost, LockNotHeld
from locks.fair_lock import FairLock

from .actor import client, eventually

LEASE = 0.3  # seconds: where the lease is to end


@pytest.fixture
def lease(monkeypatch):
    """30 s, renewed each 0.1 s: no slow machine is late by a whole one."""
    monkeypatch.setattr("locks.fair_lock.renewal.TURNS", 300)
    return 30.0


@pytest.fixture
def passes(monkeypatch):
    """`passes(20)`: by the clock of this process 20 s have passed."""
    now = SimpleNamespace(ahead=0.0)
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + now.ahead)
    monkeypatch.setattr("locks.fair_lock.time", clock)
    for module in ("renewal", "attempt", "grant", "home"):
        monkeypatch.setattr(f"locks.fair_lock.{module}.time", clock)

    def passes(seconds):
        now.ahead += seconds

    return passes


def is_renewed(redis, name):
    """By the server's clock 20 s of the 30 s pass; then a whole lease is ahead again. Three times: the first renewal
    may have been under way before, and of the third the thread may not have read the reply yet."""
    for _ in range(3):
        assert redis.pexpire(name, 10_000), "it is held"
        eventually(lambda: redis.pttl(name) > 20_000, f"{name} is renewed")


@pytest.fixture
def fresh(redis_url, redis_client):
    """A client of its own, and with it a renewal of its own."""
    with client(redis_url) as redis:
        yield redis


@pytest.fixture
def threads():
    """`threads()`: the renewal threads that this test started and that still run."""
    before = set(threading.enumerate())
    return lambda: [
        each for each in threading.enumerate() if each.name == "lock-renewal" and each not in before
    ]


def test_a_lock_is_held_for_ten_leases(fresh, lease):
    with FairLock("x", redis=fresh, lease=lease) as lock:
        for _ in range(5):
            is_renewed(fresh, "x")
            assert fresh.get("x") == lock.token
            assert lock.held


def test_one_thread_for_a_client_and_none_when_nothing_is_held(fresh, threads, lease):
    locks = [FairLock(f"n{i}", redis=fresh, lease=lease) for i in range(30)]
    for lock in locks:
        lock.acquire()
    assert len(threads()) == 1
    for lock in locks:
        lock.release()
    eventually(lambda: not threads(), "the thread ends")
    with locks[0]:
        assert len(threads()) == 1


def test_a_thread_that_could_not_be_started_is_started_by_the_next(fresh, threads, monkeypatch, lease):
    def refused(self):
        raise RuntimeError("can't start new thread")

    lock = FairLock("x", redis=fresh, lease=lease)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        with pytest.raises(RuntimeError):
            lock.acquire()
    with lock:
        assert len(threads()) == 1


def test_an_acquire_while_the_thread_ends_is_renewed_by_one_thread(fresh, threads, monkeypatch, lease):
    """The thread has found nothing held, and disconnects: at this moment another thread acquires."""
    lock, other = FairLock("x", redis=fresh, lease=lease), FairLock("y", redis=fresh, lease=lease)
    renewal = lock._home.client.renewal
    new_wire, ending, acquired = renewal._new_wire, threading.Event(), threading.Event()

    def wire():
        made = new_wire()
        usual = made.disconnect

        def disconnect():
            usual()
            ending.set()
            acquired.wait(60)

        made.disconnect = disconnect
        return made

    monkeypatch.setattr(renewal, "_new_wire", wire)
    with lock:
        (first,) = threads()
    assert ending.wait(60)
    with lock:
        acquired.set()
        first.join(60)
        with other:
            assert len(threads()) == 1


def test_a_shorter_lease_that_comes_later_is_renewed_in_time(fresh, lease):
    """The thread sleeps for 100 s when it comes."""
    with (
        FairLock("long", redis=fresh, lease=1000 * lease),
        FairLock("short", redis=fresh, lease=lease) as short,
    ):
        is_renewed(fresh, "short")
        assert short.held


def test_a_short_section_costs_no_renewal(fresh):
    lock = FairLock("x", redis=fresh, lease=60)
    with lock:
        pass
    before = fresh.info("commandstats")
    for _ in range(50):
        with lock:
            pass
    after = fresh.info("commandstats")
    sent = {name: after[name]["calls"] - before.get(name, {"calls": 0})["calls"] for name in after}
    assert sent["cmdstat_evalsha"] == sent["cmdstat_delifeq"] == 50
    assert not sent.get("cmdstat_pexpire")


def test_renewal_ends_with_the_release(fresh, lease):
    lock = FairLock("x", redis=fresh, lease=lease)
    lock.acquire()
    is_renewed(fresh, "x")
    token = lock.token
    lock.release()
    fresh.set("x", token, px=int(LEASE * 1000))  # a renewal that goes on would take it for its own
    eventually(lambda: not fresh.exists("x"), "the lease of the next holder ends, nobody extends it")


def test_renewal_ends_at_the_cap(fresh, lease, passes):
    lost = []
    lock = FairLock("x", redis=fresh, lease=lease, cap=35.0, on_lost=lost.append)
    lock.acquire()
    passes(20)
    is_renewed(fresh, "x")
    passes(20)
    assert lock.held
    fresh.pexpire("x", int(LEASE * 1000))
    eventually(lambda: not fresh.exists("x"), "its lease ends, nobody extends it")
    assert not lost
    passes(lease)
    eventually(lambda: lost, "the holder is told")
    assert lost == [lock]
    assert not lock.held
    with pytest.raises(LockLost):
        lock.release()
    with pytest.raises(LockNotHeld):
        lock.release()


def test_extend_restarts_the_time_to_the_cap(fresh, lease, passes):
    with FairLock("x", redis=fresh, lease=lease, cap=25.0) as lock:
        for _ in range(3):
            passes(15)
            is_renewed(fresh, "x")
            lock.extend()


def test_without_renewal_the_lease_ends(fresh):
    lost = threading.Event()
    lock = FairLock("x", redis=fresh, lease=LEASE, renew=False, on_lost=lambda _: lost.set())
    lock.acquire()
    assert lost.wait(60)
    assert not lock.held


def test_the_holder_hears_that_the_server_forgot_its_lock(fresh):
    lost = threading.Event()
    lock = FairLock("x", redis=fresh, lease=LEASE, on_lost=lambda _: lost.set())
    lock.acquire()
    fresh.flushall()
    assert lost.wait(60)
    assert not lock.held
    with pytest.raises(LockLost):
        lock.release()


def test_a_callback_that_fails_costs_the_other_locks_nothing(fresh, lease):
    def fail(_):
        raise RuntimeError("on purpose")

    with FairLock("other", redis=fresh, lease=lease) as other:
        lock = FairLock("x", redis=fresh, lease=lease, on_lost=fail)
        lock.acquire()
        fresh.delete("x")
        eventually(lambda: not lock.held, "the loss is noticed")
        is_renewed(fresh, "other")
        assert other.held


def test_a_callback_that_takes_its_time_costs_the_other_locks_nothing(fresh, lease):
    called, done = threading.Event(), threading.Event()

    def linger(_):
        called.set()
        done.wait()

    with FairLock("other", redis=fresh, lease=lease) as other:
        lock = FairLock("x", redis=fresh, lease=lease, on_lost=linger)
        lock.acquire()
        fresh.delete("x")
        assert called.wait(60)
        try:
            is_renewed(fresh, "other")
        finally:
            done.set()
        assert other.held


def test_the_holder_hears_in_time_that_the_server_is_silent(valkey_server):
    server = valkey_server()
    lost = threading.Event()
    patient = client(server.url, socket_timeout=3600)
    lock = FairLock("x", redis=patient, lease=LEASE, on_lost=lambda _: lost.set())
    lock.acquire()
    server.pause()
    assert lost.wait(60), "by its lease, not by the client's hour"
    assert not lock.held
    server.resume()
    with pytest.raises(LockLost):
        lock.release()


def test_a_lock_object_without_references_is_not_renewed(fresh):
    FairLock("x", redis=fresh, lease=LEASE).acquire()
    gc.collect()
    eventually(lambda: not fresh.exists("x"), "its lease ends")


def test_the_lock_of_a_thread_that_died_holding_it_is_not_renewed(fresh):
    lock = FairLock("x", redis=fresh, lease=LEASE)
    thread = threading.Thread(target=lock.acquire)
    thread.start()
    thread.join()
    eventually(lambda: not fresh.exists("x"), "its lease ends")


@pytest.mark.parametrize("used", [False, True])
def test_a_lock_that_was_made_before_a_fork_is_the_childs_own(redis_client, used):
    """As in servers that load the application first and fork then."""
    lock = FairLock("x", redis=redis_client)
    for _ in range(3 if used else 0):
        with lock:
            pass
    child = os.fork()
    if not child:
        try:
            for _ in range(3):
                with lock:
                    assert lock.held
                    assert lock.token
                    assert lock.fencing_token
                    lock.extend()
            os._exit(0)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not redis_client.exists("x")


def test_a_forked_child_holds_nothing_and_can_lock(fresh, lease):
    lock = FairLock("x", redis=fresh, lease=lease)
    lock.acquire()
    child = os.fork()
    if child == 0:
        try:
            assert not lock.held
            assert lock.token is None
            with pytest.raises(LockNotHeld):
                lock.release()
            assert lock.acquire(timeout=0) is False
            with FairLock("y", redis=fresh, lease=lease) as mine:
                is_renewed(fresh, "y")  # by a thread of the child's own
                assert mine.held
        except BaseException as error:  # noqa: BLE001  nothing may get out into pytest's copy
            os.write(2, f"child: {error!r}\n".encode())
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert lock.held
    lock.release()


def test_a_renewal_thread_that_died_is_missed_by_the_clock_and_replaced(
    fresh, threads, monkeypatch, lease, passes
):
    lock, other = FairLock("x", redis=fresh, lease=lease), FairLock("y", redis=fresh, lease=lease)
    renewal = lock._home.client.renewal
    with monkeypatch.context() as dying:
        dying.setattr(threading, "excepthook", lambda _: None)
        dying.setattr(renewal, "_round", lambda _: 1 / 0)
        lock.acquire()
        eventually(lambda: not threads(), "the thread died")
    assert lock.held
    passes(lease)
    assert not lock.held, "the holder knows by its clock"
    fresh.pexpire("x", int(LEASE * 1000))
    eventually(lambda: not fresh.exists("x"), "and the server by its own")
    with pytest.raises(LockLost):
        lock.release()
    with other:
        is_renewed(fresh, "y")
        assert other.held


def test_a_holder_paused_past_its_lease_knows_it_when_it_wakes(actor, redis_client):
    paused, next_one = actor(lease=LEASE), actor(lease=30)
    paused.tell("acquire").answer()
    next_one.tell("acquire")
    paused.signal(signal.SIGSTOP)
    assert next_one.answer()[0] is True
    paused.signal(signal.SIGCONT)
    assert paused.tell("release").answer()[0] == "LockLost"
    assert next_one.tell("release").answer()[0] is None


def test_nothing_is_kept_of_a_thread_that_died_holding(fresh):
    """A long-lived object in a pool of threads: each one that dies inside would stay in it for ever."""
    lost = threading.Event()
    lock = FairLock("x", redis=fresh, lease=LEASE, on_lost=lambda _: lost.set())
    thread = threading.Thread(target=lock.acquire)
    thread.start()
    thread.join(60)
    assert lost.wait(60)
    assert thread not in lock._grants
