"""fair-lock when the server or the way to it fails: lost replies, forgotten scripts, restarts, a moved slot."""

import time
from collections.abc import Iterator

import pytest

from locks.errors import LockLost, LockUnavailable
from locks.fair_lock import FairLock
from locks.fair_lock.questions import ACQUIRE

from .actor import client, eventually
from .silencer import Silencer

SLACK = 60.0  # seconds that other work on the machine may take


@pytest.fixture
def server(valkey_server):
    return valkey_server(port=0)


@pytest.fixture
def silencer(server) -> Iterator[Silencer]:
    started = Silencer(server.port)
    yield started
    started.close()


@pytest.fixture
def direct(server):
    with server.client() as redis:
        ACQUIRE(redis, ["warm", "{warm}:fence", "{warm}:queue", "{warm}:heard"], ["try", 1, "a:1:1"])
        yield redis


@pytest.fixture(params=[False, True], ids=["aloud", "quiet"])
def lock(request, silencer, direct):
    """A lock behind the proxy, its connection open and its scripts known. Its next question is quiet or not."""
    lock = FairLock("x", redis=client(silencer.url), lease=60)
    with lock:
        pass
    lock._home.questions.busy = request.param
    return lock


def test_an_acquire_whose_reply_was_lost_finds_itself_the_holder(lock, silencer, direct):
    before = int(direct.hget("{x}:fence", "number"))
    silencer.swallow()
    assert lock.acquire()
    assert silencer.swallowed == 1
    assert direct.get("x") == lock.token
    assert lock.fencing_token == int(direct.hget("{x}:fence", "number")) == before + 1  # granted once


def test_a_waiter_whose_reply_was_lost_is_in_the_queue_once(lock, silencer, direct, actor):
    holder = FairLock("x", redis=direct)
    holder.acquire()
    waiter = actor(url=silencer.url, lease=60)
    assert waiter.tell("acquire", timeout=0).answer()[0] is False  # its connection is open
    silencer.swallow()
    waiter.tell("acquire")
    eventually(lambda: silencer.swallowed == 1, "the reply was swallowed")
    eventually(lambda: direct.llen("{x}:queue") == 1, "queued")
    assert direct.llen("{x}:queue") == 1
    holder.release()
    # The connection was cut just after the hand-over or just before; either way it gets the lock, far sooner
    # than a lease of 60 s.
    assert waiter.answer()[0] is True


@pytest.mark.parametrize("swallowed", [b"DELIFEQ", b"EVALSHA"])
def test_a_release_whose_reply_was_lost_is_done_once(lock, silencer, direct, actor, swallowed):
    aloud = not lock._home.questions.busy
    lock.acquire()
    waiter = actor(url=client_url(direct), lease=60).tell("acquire")
    eventually(lambda: direct.llen("{x}:queue") == 1, "queued")
    silencer.swallow(to=(swallowed,))
    lock.release()
    tries = {b"DELIFEQ"} if aloud else set()  # what was asked for quietly is given back by the script at once
    assert silencer.swallowed == (swallowed in tries | {b"EVALSHA"})
    _, token, _, _ = waiter.answer()
    assert direct.get("x") == token + b"+"  # the repeated release did not touch the next holder


def test_a_release_whose_reply_was_lost_without_waiters(lock, silencer, direct):
    lock.acquire()
    silencer.swallow()
    lock.release()
    assert silencer.swallowed == 1
    assert not direct.exists("x")


def client_url(redis):
    return f"unix://{redis.connection_pool.connection_kwargs['path']}"


def test_a_release_whose_reply_was_lost_after_the_server_lost_all_says_so(lock, silencer, direct):
    lock.acquire()
    direct.flushall()
    silencer.swallow()
    with pytest.raises(LockLost):
        lock.release()


def test_a_release_whose_reply_was_lost_after_a_failover_says_so(lock, silencer, direct):
    """To a replica that lagged: it has the fence as it was, neither the lock nor its number."""
    lock.acquire()
    direct.delete("x")
    direct.hincrby("{x}:fence", "number", -1)
    silencer.swallow()
    with pytest.raises(LockLost):
        lock.release()


def test_an_extension_whose_reply_was_lost(lock, silencer, direct):
    lock.acquire()
    direct.pexpire("x", 30_000)
    silencer.swallow()
    lock.extend()
    assert direct.pttl("x") > 50_000


def test_what_lost_replies_left_behind_does_not_stand_in_the_way(lock, silencer, direct):
    silencer.swallow(3)
    with pytest.raises(LockUnavailable):
        lock.acquire()
    assert direct.exists("x")  # granted, and no client knows
    assert not lock.held
    assert lock.acquire(timeout=30)  # far sooner than the lease of 60 s
    assert direct.get("x") == lock.token
    silencer.swallow(2)
    with pytest.raises(LockUnavailable):
        lock.release()
    assert lock.acquire(timeout=30)


def test_a_script_flush_costs_one_more_round_trip(redis_client, actor):
    lock = FairLock("x", redis=redis_client)
    for _ in range(2):
        redis_client.script_flush()
        lock.acquire()
        redis_client.script_flush()
        lock.extend()
        waiter = actor().tell("acquire")
        eventually(lambda: redis_client.llen("{x}:queue") == 1, "queued")
        redis_client.script_flush()
        lock.release()
        assert waiter.answer()[0] is True
        redis_client.script_flush()
        assert waiter.tell("release").answer()[0] is None


def test_waiters_find_the_server_again_after_a_restart(server, actor):
    lock = FairLock("x", redis=server.client(), lease=60)
    lock.acquire()
    number = lock.fencing_token
    waiter = actor(url=server.url, lease=60).tell("acquire")
    eventually(lambda: lock.redis.llen("{x}:queue") == 1, "queued")
    lock.redis.ping()  # and told so: a server writes its replies before it reads on
    server.kill()
    server.start()  # without persistence: lock, queue, counter and scripts are gone
    said, _, new_number, _ = waiter.answer()
    assert said is True
    assert new_number > number
    with pytest.raises(LockLost):
        lock.release()
    assert waiter.tell("release").answer()[0] is None
    with lock:
        assert lock.held


def test_an_idle_connection_that_died_is_not_noticed(server):
    lock = FairLock("x", redis=server.client())
    with lock:
        server.client().client_kill_filter(_type="pubsub", skipme=False)
    server.restart()
    with lock:
        assert lock.held


def test_a_server_that_is_down_is_reported_at_once(server):
    lock = FairLock("x", redis=server.client(socket_timeout=600))
    with lock:
        pass
    server.kill()
    started = time.monotonic()
    with pytest.raises(LockUnavailable, match="cannot be reached"):
        lock.acquire()
    assert time.monotonic() - started < SLACK  # not the client's 600 s


@pytest.mark.parametrize("connected", [True, False])
def test_the_wait_time_is_kept_when_the_server_is_silent(server, connected):
    lock = FairLock("x", redis=server.client(socket_timeout=600))
    if connected:
        lock.acquire()
        lock.release()
    server.pause()
    started = time.monotonic()
    with pytest.raises(LockUnavailable):
        lock.acquire(timeout=0.6)
    assert 0.6 <= time.monotonic() - started < SLACK  # not the client's 600 s


@pytest.mark.parametrize("connected", [True, False])
def test_a_silent_server_is_given_up_after_the_clients_own_time_out(server, connected):
    lock = FairLock("x", redis=server.client(socket_timeout=0.3))
    if connected:
        lock.acquire()
        lock.release()
    server.pause()
    started = time.monotonic()
    with pytest.raises(LockUnavailable):
        lock.acquire()
    assert 0.3 <= time.monotonic() - started < 4.8  # not 5 s, which is what a client has that says nothing


def test_a_server_without_compare_and_delete(valkey_server):
    server = valkey_server(config={"rename-command": ("DELIFEQ", "")})
    redis = server.client()
    lock = FairLock("x", redis=redis)
    for _ in range(3):
        with lock:
            assert redis.get("x") == lock.token
        assert not redis.exists("x")


def test_another_thread_finds_out_meanwhile_that_there_is_no_compare_and_delete(valkey_server):
    redis = valkey_server(config={"rename-command": ("DELIFEQ", "")}).client()
    lock = FairLock("x", redis=redis)
    for known in (True, False):
        lock._home.client.deletes = True
        with lock:
            lock._home.client.deletes = known
        assert not redis.exists("x")


def test_what_two_threads_settle_at_once_is_settled_once(redis_client, monkeypatch):
    lock = FairLock("x", redis=redis_client, lease=30)
    lock._home.abandoned.append(b"left behind")
    seen = []

    def withdraw(wire, calls, word):
        seen.append(word)
        lock._home.settle(wire)  # another thread, at the same moment

    monkeypatch.setattr("locks.fair_lock.home.withdraw", withdraw)
    lock._home.settle(None)
    assert (seen, lock._home.abandoned) == ([b"left behind"], [])


def test_what_could_not_be_settled_is_left_for_the_next(redis_client, monkeypatch):
    lock = FairLock("x", redis=redis_client, lease=30)
    lock._home.abandoned.append(b"left behind")

    def withdraw(wire, calls, word):
        raise ConnectionError

    monkeypatch.setattr("locks.fair_lock.home.withdraw", withdraw)
    with pytest.raises(ConnectionError):
        lock._home.settle(None)
    assert lock._home.abandoned == [b"left behind"]
