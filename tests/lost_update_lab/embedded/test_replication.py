"""A failover loses what no replica had, and only that."""

import pytest
import redis

from loadtest.servers import ServerError
from lost_update_lab.embedded.replication import ReplicaSet


@pytest.fixture(scope="module")
def replica_set():
    with ReplicaSet(replicas=2, sentinels=3) as servers:
        yield servers


def test_replicas_follow(replica_set):
    client = replica_set.client()
    client.set("k", "v")
    assert client.wait(2, 5000) == 2
    assert {replica.client().get("k") for replica in replica_set.replicas} == {b"v"}
    with pytest.raises(redis.exceptions.ReadOnlyError):
        replica_set.replicas[0].client().set("k", "w")


# One after the other on the same servers: each takes over from where the last failover left them.
@pytest.mark.deep
@pytest.mark.parametrize(("severed", "lock_after"), [(True, None), (False, b"A")])
def test_a_lock_that_only_the_primary_had_is_lost(severed, lock_after, replica_set):
    client = replica_set.client()
    client.delete("lock")
    client.set("before", "v")
    replica_set.await_replication()
    old = replica_set.primary

    if severed:
        replica_set.sever()
    assert client.set("lock", "A", nx=True)
    assert client.wait(2, 500 if severed else 5000) == (0 if severed else 2)
    old.kill()
    for replica in replica_set.servers:
        replica.resume()
    new = replica_set.await_failover(old)

    assert new is not old
    assert new.client().get("before") == b"v"
    assert new.client().get("lock") == lock_after
    assert replica_set.client().set("lock", "B", nx=True) is (True if severed else None)

    old.start()  # the old primary comes back as a replica and forgets its lock
    replica_set.await_agreement(new)
    replica_set.await_replication()
    assert old.client().get("lock") == (b"B" if severed else b"A")


@pytest.mark.deep
def test_waiting_for_a_failover_that_does_not_come_says_so(replica_set):
    told = r"(?s)no replica was promoted within 0\.3 s.*sentinel\.log:\n.*switch-master"
    with pytest.raises(ServerError, match=told):
        replica_set.await_failover(replica_set.primary, timeout=0.3)


@pytest.mark.deep
def test_sentinels_that_had_no_processor_for_a_while_still_promote():
    """A busy machine stops them for longer than the `tilt-trigger`. Here any step does."""
    with ReplicaSet(replicas=1) as servers:
        set_tilt_trigger(servers, ms=1)
        servers._wait(lambda: all(tilted(servers)), 15, "not each sentinel was in tilt")
        set_tilt_trigger(servers, ms=2000)
        old = servers.primary
        old.kill()
        assert servers.await_failover(old) is servers.servers[1]


def set_tilt_trigger(servers: ReplicaSet, *, ms: int) -> None:
    for sentinel in servers.sentinels:
        with sentinel.client() as client:
            client.execute_command("SENTINEL", "DEBUG", "tilt-trigger", ms)


def tilted(servers: ReplicaSet) -> list[bool]:
    return [bool(sentinel.info("sentinel")["sentinel_tilt"]) for sentinel in servers.sentinels]
