"""reentrant-mended: a lock that cannot be released is not renewed: an interrupted acquire, a lost object."""

import gc
import threading
from contextlib import suppress

import pytest

from locks import reentrant_mended
from locks.errors import LockLost, LockUnsupported
from locks.reentrant_mended import ReentrantMendedLock

from .interrupts import interrupted

LEASE = 0.2


def test_an_interrupted_acquire_is_not_renewed(redis_client):
    """At whatever step: it was renewed for 300 s, by a thread that could not be stopped."""
    step = 1
    lock = ReentrantMendedLock("x", redis=redis_client, lease=LEASE)
    while interrupted(step, lambda: lock.acquire(timeout=0), reentrant_mended):
        assert not lock.held, f"step {step}"
        other = ReentrantMendedLock("x", redis=redis_client, lease=10)
        assert other.acquire(timeout=20 * LEASE), f"step {step}"
        other.release()
        assert lock.acquire(timeout=20 * LEASE), f"step {step}"
        with suppress(LockLost):  # on a machine that stood still for so long
            lock.release()
        step += 1
    assert step > 20
    assert lock.held


def test_an_interrupted_entry_is_none(redis_client):
    """A holder leaves by as many releases as before."""
    step = 1
    lock = ReentrantMendedLock("x", redis=redis_client, lease=10)
    while True:
        assert lock.acquire(timeout=0)
        if not interrupted(step, lambda: lock.acquire(timeout=0), reentrant_mended):
            break
        assert lock.held, f"step {step}"
        lock.release()
        assert not lock.held, f"step {step}"
        assert not redis_client.exists("x"), f"step {step}"
        step += 1
    assert step > 20


def test_a_lock_object_without_references_is_not_renewed(redis_client):
    others = set(threading.enumerate())
    lock = ReentrantMendedLock("x", redis=redis_client, lease=2)
    assert lock.acquire()
    (renewal,) = set(threading.enumerate()) - others
    del lock
    gc.collect()
    renewal.join(10)
    assert not renewal.is_alive()


def test_a_user_who_may_not_set_a_lease_leaves_no_lock_without_one(redis_client, valkey_server):
    """It had been written by then, and would have stood for ever."""
    server = valkey_server()
    with server.client() as admin:
        admin.execute_command("ACL", "SETUSER", "mary", "on", "nopass", "~*", "+@all", "-pexpire")
        with server.client(username="mary", password="x") as hers, pytest.raises(LockUnsupported):
            ReentrantMendedLock("x", redis=hers).acquire()
        assert not admin.exists("x")
