"""Locks in a Cluster. fair-lock: slots that move, primaries that go, a process that forks. Others: a waiter."""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.retry import Retry

from locks import LOCKS
from locks.errors import LockUnavailable
from locks.fair_lock import FairLock
from lost_update_lab.embedded.ports import free_port
from lost_update_lab.embedded.valkey import Valkey

from .actor import eventually

Cluster = tuple[RedisCluster, Redis, Redis]


def two_nodes(start: Callable[..., Valkey]) -> list[Valkey]:
    """Each with a port for the bus. The default, 10,000 higher, may be the port of an outgoing connection."""
    return [start(port=0, config={"cluster-enabled": "yes", "cluster-port": free_port()}) for _ in range(2)]


@contextmanager
def joined(nodes: list[Valkey]) -> Iterator[Cluster]:
    """Two primaries. The first has all slots but one. Takes 2 s: that is how often the nodes talk."""
    first, second = (node.client() for node in nodes)
    first.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16382)
    second.execute_command("CLUSTER", "ADDSLOTS", 16383)  # a client knows which node has which slots
    bus = second.config_get("cluster-port")["cluster-port"]
    first.execute_command("CLUSTER", "MEET", "127.0.0.1", nodes[1].port, bus)
    for node in (first, second):
        eventually(lambda node=node: b"cluster_known_nodes:2" in raw(node, "INFO"), "the nodes met")
        eventually(lambda node=node: b"cluster_state:ok" in raw(node, "INFO"), "all slots served")
    redis = RedisCluster(host="127.0.0.1", port=nodes[0].port, retry=Retry(NoBackoff(), 0))
    yield redis, first, second
    redis.close()


@pytest.fixture
def nodes(valkey_server: Callable[..., Valkey]) -> list[Valkey]:
    return two_nodes(valkey_server)


@pytest.fixture
def cluster(nodes: list[Valkey]) -> Iterator[Cluster]:
    """For a test that moves a slot or kills a node."""
    with joined(nodes) as found:
        yield found


@pytest.fixture(scope="module")
def standing_cluster() -> Iterator[Cluster]:
    """For tests that leave the cluster as it is."""
    with ExitStack() as servers:
        yield servers.enter_context(joined(two_nodes(lambda **how: servers.enter_context(Valkey(**how)))))


def raw(node: Redis, what: str) -> bytes:
    said = node.execute_command("CLUSTER", what)
    return "\n".join(f"{k}:{v}" for k, v in said.items()).encode() if isinstance(said, dict) else said


@pytest.mark.deep
def test_in_a_cluster_also_when_its_slot_moves(cluster):
    redis, first, second = cluster
    lock = FairLock("x", redis=redis)
    with lock:
        assert first.get("x") == lock.token
        number = lock.fencing_token
    slot = first.execute_command("CLUSTER", "KEYSLOT", "x")
    new_home = second.execute_command("CLUSTER", "MYID")
    for node in (second, first):
        first.delete("{x}:fence")  # a node that gives a slot away must be empty of it
        node.execute_command("CLUSTER", "SETSLOT", slot, "NODE", new_home)
    with lock:
        assert second.get("x") == lock.token
        assert lock.fencing_token > number


def moves(cluster, nodes):
    """The slot of "x" to the second node, with its keys."""
    _, first, second = cluster
    slot = first.execute_command("CLUSTER", "KEYSLOT", "x")
    old, new = (node.execute_command("CLUSTER", "MYID") for node in (first, second))
    second.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", old)
    first.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", new)
    keys = first.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 100)
    first.migrate("127.0.0.1", nodes[1].port, keys, 0, 5000)
    for node in (second, first):
        node.execute_command("CLUSTER", "SETSLOT", slot, "NODE", new)


@pytest.mark.deep
def test_in_a_cluster_what_is_held_is_renewed_also_when_its_slot_moves(cluster, nodes):
    redis, _, second = cluster
    with FairLock("x", redis=redis, lease=3) as lock:
        moves(cluster, nodes)
        second.pexpire("x", 60_000)
        eventually(lambda: 0 < second.pttl("x") <= 3_000, "the lease was begun anew at the second node")
        assert lock.held
    assert not second.exists("x")


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("held", [False, True])
def test_in_a_cluster_the_next_primary_is_found_when_the_last_one_is_gone(cluster, nodes, held):
    """No node is there to say MOVED."""
    redis, _, second = cluster
    lock = FairLock("x", redis=redis)
    lock.acquire()
    if not held:
        lock.release()
    moves(cluster, nodes)
    nodes[0].kill()
    with pytest.raises(LockUnavailable):
        lock.release() if held else lock.acquire()
    assert lock.acquire(timeout=5)
    assert second.get("x") == lock.token
    lock.release()


@pytest.mark.deep
def test_in_a_cluster_a_moved_slot_is_no_reason_to_wait_longer(cluster, nodes):
    redis, first, _ = cluster
    holder, waiter = (FairLock("x", redis=redis) for _ in range(2))
    holder.acquire()
    with ThreadPoolExecutor(max_workers=1) as thread:
        started = time.monotonic()
        waiting = thread.submit(waiter.acquire, timeout=3)
        eventually(lambda: first.llen("{x}:queue") == 1, "queued")
        moves(cluster, nodes)
        assert waiting.result(30) is False
        assert time.monotonic() - started < 5  # it hears of it at its end, and does not start again


@pytest.mark.deep
def test_in_a_cluster_a_forked_childs_slot_may_move(cluster, nodes):
    """The client of the other node is made after the fork."""
    lock = FairLock("x", redis=cluster[0])
    child = os.fork()
    if not child:
        try:
            lock.acquire()
            moves(cluster, nodes)
            lock.extend()
            lock.release()
            os._exit(0)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize(
    "slug", ["token", "semaphore", "reentrant-mended", "fenced", "token-pubsub", "token-queue"]
)
def test_in_a_cluster_one_waits_for_another(standing_cluster: Cluster, slug: str) -> None:
    redis, first, _ = standing_cluster
    first.flushall()
    make: Any = LOCKS[slug]
    holder, waiter = (make("x", redis=redis) for _ in range(2))
    assert holder.acquire(timeout=0)
    assert not waiter.acquire(timeout=0.2)
    with ThreadPoolExecutor(max_workers=1) as thread:
        waiting = thread.submit(waiter.acquire, timeout=60)
        holder.release()
        assert waiting.result(60)
    assert first.exists("x")


@pytest.mark.parametrize("slug", ["replicated", "durable"])
def test_in_a_cluster_who_asks_one_server_says_so(standing_cluster: Cluster, slug: str) -> None:
    make: Any = LOCKS[slug]
    with pytest.raises(TypeError, match="the client of one server"):
        make("x", redis=standing_cluster[0])
