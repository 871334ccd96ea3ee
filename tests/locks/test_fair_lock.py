"""fair-lock as one program sees it: which thread holds, how long it waits, what it raises."""

import threading
import time

import pytest
from redis import BlockingConnectionPool, Redis

from locks.errors import LockError, LockLost, LockNotHeld, LockTimeout, LockUnavailable, LockUnsupported
from locks.fair_lock import FairLock

from .actor import client


def in_thread(work):
    """Run `work` in a thread of its own; return what it returned or raised."""
    came = []

    def run():
        try:
            came.append(work())
        except Exception as error:  # noqa: BLE001  the test looks at it
            came.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    return came[0]


def test_holds_from_acquire_to_release(redis_client):
    lock = FairLock("x", redis=redis_client)
    assert not lock.held
    assert lock.token is None
    with lock:
        assert lock.held
        assert redis_client.get("x") == lock.token
        assert 0 < redis_client.pttl("x") <= 10_000
    assert not lock.held
    assert redis_client.keys() == [b"{x}:fence"]
    assert redis_client.ttl("{x}:fence") == -1


def test_a_number_grows_with_every_grant_and_not_with_a_refusal(redis_client):
    a, b = (FairLock("x", redis=redis_client) for _ in range(2))
    a.acquire()
    first = a.fencing_token
    assert not b.acquire(timeout=0)
    assert not b.acquire(timeout=0.02)
    a.release()
    b.acquire()
    assert b.fencing_token == first + 1


def test_numbers_stay_above_those_from_before_a_loss_of_all_data(redis_client):
    lock = FairLock("x", redis=redis_client)
    for _ in range(3):
        with lock:
            before = lock.fencing_token
    redis_client.flushall()
    with lock:
        assert lock.fencing_token > before


def test_wait_time_is_kept(redis_client, redis_url):
    """Not the client's 600 s, and not until its next look after 200 s; the contract measures it to 10 %."""
    patient = client(redis_url, socket_timeout=600)
    with FairLock("x", redis=redis_client):
        started = time.monotonic()
        assert not FairLock("x", redis=patient, lease=600).acquire(timeout=1.0)
        assert 1.0 <= time.monotonic() - started < 60
        assert not redis_client.exists("{x}:queue", "{x}:heard")


def test_the_caller_gives_the_wait_time_of_with(redis_client):
    class Impatient(FairLock):
        def acquire(self, timeout=0.05):
            return super().acquire(timeout)

    with FairLock("x", redis=redis_client), pytest.raises(LockTimeout), Impatient("x", redis=redis_client):
        pytest.fail("ran the body without the lock")


def test_release_and_extend_without_holding(redis_client):
    lock, other = FairLock("x", redis=redis_client), FairLock("x", redis=redis_client)
    with pytest.raises(LockNotHeld):
        lock.release()
    other.acquire()
    with pytest.raises(LockNotHeld):
        lock.release()
    with pytest.raises(LockNotHeld):
        lock.extend()
    assert other.held
    assert redis_client.get("x") == other.token


def test_each_thread_of_a_shared_object_is_a_holder_of_its_own(redis_client):
    lock = FairLock("x", redis=redis_client)
    lock.acquire()
    assert in_thread(lambda: lock.acquire(timeout=0)) is False
    assert isinstance(in_thread(lock.release), LockNotHeld)
    assert in_thread(lambda: lock.held)  # a look from outside
    assert in_thread(lambda: lock.token) is None
    lock.release()


@pytest.mark.parametrize("reentrant", [True, False])
def test_reentrancy_is_an_option(redis_client, reentrant):
    lock = FairLock("x", redis=redis_client, reentrant=reentrant)
    lock.acquire()
    number = lock.fencing_token
    if not reentrant:
        with pytest.raises(LockError, match="reentrant=True"):
            lock.acquire()
        return
    lock.acquire()
    assert lock.fencing_token == number
    assert in_thread(lambda: lock.acquire(timeout=0)) is False  # another thread is another holder
    lock.release()
    assert lock.held
    assert redis_client.get("x") == lock.token
    lock.release()
    assert not lock.held
    assert redis_client.get("x") is None


def test_a_reentrant_holder_that_lost_it_enters_no_more(redis_client):
    lock = FairLock("x", redis=redis_client, reentrant=True)
    lock.acquire()
    lock.acquire()
    redis_client.delete("x")
    with pytest.raises(LockLost):
        lock.extend()
    for use in (lock.acquire, lock.release, lock.release):
        with pytest.raises(LockLost):
            use()
    with lock:
        assert lock.held


@pytest.mark.parametrize("use", ["release", "extend"])
def test_a_loss_is_reported_at_the_next_use(redis_client, use):
    lost = []
    lock = FairLock("x", redis=redis_client, on_lost=lost.append)
    lock.acquire()
    redis_client.set("x", "another's", px=60_000)
    with pytest.raises(LockLost):
        getattr(lock, use)()
    assert not lock.held
    assert lost == [lock]
    assert redis_client.get("x") == b"another's"


@pytest.mark.parametrize("bad", ["", "a b", "x" * 201, "{x}", None])
def test_names_are_checked(redis_client, bad):
    with pytest.raises(ValueError, match="no lock name"):
        FairLock(bad, redis=redis_client)


def test_leases_are_checked(redis_client):
    with pytest.raises(ValueError, match="lease"):
        FairLock("x", redis=redis_client, lease=0)


@pytest.mark.parametrize(
    "options", [{"decode_responses": True}, {"protocol": 2}, {"client_name": "till"}, {"db": 3}]
)
def test_with_a_plain_client_of_redis_py(redis_url, options):
    redis = client(redis_url, **options)
    with FairLock("stranger", redis=redis) as lock:
        assert redis.get("stranger") in (lock.token, lock.token.decode())


def test_takes_no_connection_from_the_pool(redis_url):
    pool = BlockingConnectionPool.from_url(redis_url, max_connections=1, timeout=1)
    redis = Redis(connection_pool=pool)
    with redis.monitor(), FairLock("x", redis=redis) as lock:
        assert lock.held


def test_a_server_with_a_password_on_tcp(valkey_server):
    server = valkey_server(port=0)
    server.client().config_set("requirepass", "s3cret")
    with FairLock("x", redis=client(server.tcp_url, password="s3cret")) as lock:
        assert lock.held
    with pytest.raises(LockUnavailable):
        FairLock("x", redis=client(server.tcp_url, password="wrong")).acquire()


def test_a_user_who_may_not(redis_client, redis_url):
    for user, rules in {
        "no-lua": ["~*", "&*", "+@all", "-evalsha", "-eval"],
        "no-channel": ["~*", "resetchannels", "+@all"],
    }.items():
        redis_client.execute_command("ACL", "SETUSER", user, "on", "nopass", *rules)
        try:
            with pytest.raises(LockUnsupported):
                FairLock("x", redis=client(redis_url, username=user, password="x")).acquire()
        finally:
            redis_client.execute_command("ACL", "DELUSER", user)


def test_a_read_only_replica(valkey_server, redis_client):
    primary = valkey_server(port=0)
    replica = valkey_server(config={"replicaof": ("127.0.0.1", primary.port)})
    with pytest.raises(LockUnavailable, match="read-only replica"):
        FairLock("x", redis=replica.client()).acquire()
