"""Renewal of fair locks: it keeps what is held, ends with the release, and says what was lost."""

import gc
import os
import signal
import threading
import time

import pytest

from locks.errors import LockLost, LockNotHeld
from locks.fair_lock import FairLock

from .actor import client, eventually

LEASE = 0.3


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


def test_a_lock_is_held_for_ten_leases(fresh):
    with FairLock("x", redis=fresh, lease=LEASE) as lock:
        until = time.monotonic() + 10 * LEASE
        while time.monotonic() < until:
            assert fresh.get("x") == lock.token
            assert lock.held
            time.sleep(0.01)


def test_one_thread_for_a_client_and_none_when_nothing_is_held(fresh, threads):
    locks = [FairLock(f"n{i}", redis=fresh, lease=LEASE) for i in range(30)]
    for lock in locks:
        lock.acquire()
    assert len(threads()) == 1
    for lock in locks:
        lock.release()
    eventually(lambda: not threads(), "the thread ends")
    with locks[0]:
        assert len(threads()) == 1


def test_a_thread_that_could_not_be_started_is_started_by_the_next(fresh, threads, monkeypatch):
    def refused(self):
        raise RuntimeError("can't start new thread")

    lock = FairLock("x", redis=fresh, lease=LEASE)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        with pytest.raises(RuntimeError):
            lock.acquire()
    with lock:
        assert len(threads()) == 1


def test_an_acquire_while_the_thread_ends_is_renewed_by_one_thread(fresh, threads, monkeypatch):
    """The thread has found nothing held, and disconnects: at this moment somebody acquires."""
    lock, other = FairLock("x", redis=fresh, lease=LEASE), FairLock("y", redis=fresh, lease=LEASE)
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


def test_a_shorter_lease_that_comes_later_is_renewed_in_time(fresh):
    with FairLock("long", redis=fresh, lease=60), FairLock("short", redis=fresh, lease=0.2) as short:
        time.sleep(0.6)
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


def test_renewal_ends_with_the_release(fresh):
    lock = FairLock("x", redis=fresh, lease=LEASE)
    lock.acquire()
    lock.release()
    fresh.set("x", lock.token or "the next holder's", px=int(LEASE * 1000))
    eventually(lambda: not fresh.exists("x"), "the lease of the next holder ends, nobody extends it")


def test_renewal_ends_at_the_cap(fresh):
    lost = []
    lock = FairLock("x", redis=fresh, lease=LEASE, cap=2 * LEASE, on_lost=lost.append)
    started = time.monotonic()
    lock.acquire()
    eventually(lambda: lost, "the holder is told")
    assert lost == [lock]
    assert 2 * LEASE < time.monotonic() - started < 3 * LEASE + 1.5
    assert not lock.held
    with pytest.raises(LockLost):
        lock.release()
    with pytest.raises(LockNotHeld):
        lock.release()


def test_extend_starts_the_time_to_the_cap_anew(fresh):
    lock = FairLock("x", redis=fresh, lease=LEASE, cap=0.0)
    lock.acquire()
    for _ in range(4):
        time.sleep(LEASE / 3)
        lock.extend()
        assert lock.held
    lock.release()


def test_without_renewal_the_lease_ends(fresh):
    lost = threading.Event()
    lock = FairLock("x", redis=fresh, lease=LEASE, renew=False, on_lost=lambda _: lost.set())
    lock.acquire()
    assert lost.wait(10)
    assert not lock.held


def test_the_holder_hears_that_the_server_forgot_its_lock(fresh):
    lost = threading.Event()
    lock = FairLock("x", redis=fresh, lease=LEASE, on_lost=lambda _: lost.set())
    lock.acquire()
    fresh.flushall()
    assert lost.wait(10)
    assert not lock.held
    with pytest.raises(LockLost):
        lock.release()


def test_a_callback_that_fails_costs_the_other_locks_nothing(fresh):
    def fail(_):
        raise RuntimeError("on purpose")

    with FairLock("other", redis=fresh, lease=LEASE) as other:
        lock = FairLock("x", redis=fresh, lease=LEASE, on_lost=fail)
        lock.acquire()
        fresh.delete("x")
        eventually(lambda: not lock.held, "the loss is noticed")
        time.sleep(2 * LEASE)
        assert other.held


def test_the_holder_hears_in_time_that_the_server_is_silent(valkey_server):
    server = valkey_server()
    lost = threading.Event()
    lock = FairLock("x", redis=server.client(), lease=LEASE, on_lost=lambda _: lost.set())
    lock.acquire()
    started = time.monotonic()
    server.pause()
    assert lost.wait(10)
    assert time.monotonic() - started < 2 * LEASE + 1.5  # not the client's 5 s
    assert not lock.held
    server.resume()
    with pytest.raises(LockLost):
        lock.release()


def test_a_lock_object_that_nobody_has_any_more_is_not_renewed(fresh):
    FairLock("x", redis=fresh, lease=LEASE).acquire()
    gc.collect()
    eventually(lambda: not fresh.exists("x"), "its lease ends")


def test_the_lock_of_a_thread_that_died_holding_it_is_not_renewed(fresh):
    lock = FairLock("x", redis=fresh, lease=LEASE)
    thread = threading.Thread(target=lock.acquire)
    thread.start()
    thread.join()
    eventually(lambda: not fresh.exists("x"), "its lease ends")


def test_a_forked_child_holds_nothing_and_can_lock(fresh):
    lock = FairLock("x", redis=fresh, lease=LEASE)
    lock.acquire()
    child = os.fork()
    if child == 0:
        try:
            assert not lock.held
            assert lock.token is None
            with pytest.raises(LockNotHeld):
                lock.release()
            assert lock.acquire(timeout=0) is False
            with FairLock("y", redis=fresh, lease=LEASE) as mine:
                time.sleep(2 * LEASE)  # renewed by a thread of the child's own
                assert mine.held
        except BaseException as error:  # noqa: BLE001  nothing may get out into pytest's copy
            os.write(2, f"child: {error!r}\n".encode())
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert lock.held
    lock.release()


def test_a_renewal_thread_that_died_is_missed_by_the_clock_and_replaced(fresh, threads, monkeypatch):
    lock, other = FairLock("x", redis=fresh, lease=LEASE), FairLock("y", redis=fresh, lease=LEASE)
    renewal = lock._home.client.renewal
    with monkeypatch.context() as dying:
        dying.setattr(threading, "excepthook", lambda _: None)
        dying.setattr(renewal, "_round", lambda _: 1 / 0)
        lock.acquire()
        eventually(lambda: not threads(), "the thread died")
    assert lock.held
    eventually(lambda: not lock.held, "the holder knows by its clock")
    eventually(lambda: not fresh.exists("x"), "and the server by its own")
    with pytest.raises(LockLost):
        lock.release()
    with other:
        time.sleep(2 * LEASE)
        assert other.held


def test_a_holder_paused_past_its_lease_knows_it_when_it_wakes(actor, redis_client):
    paused, next_one = actor(lease=LEASE), actor(lease=LEASE)
    paused.tell("acquire").answer()
    next_one.tell("acquire")
    paused.signal(signal.SIGSTOP)
    assert next_one.answer()[0] is True
    paused.signal(signal.SIGCONT)
    assert paused.tell("release").answer()[0] == "LockLost"
    assert next_one.tell("release").answer()[0] is None
