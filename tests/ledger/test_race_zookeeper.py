"""ZooKeeper's lock in front of the ledger: what the end of a session costs, with and without its number checked."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.conf import settings
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss

from ledger.posting import Busy
from loadtest.faults.scene.proxy import Proxy
from loadtest.servers import ZooKeeper, zookeeper
from locks.errors import LockLost, LockNotHeld, LockUnavailable
from locks.zookeeper import ZooKeeperLock
from locks.zookeeper_client import Alarm, Asking, client_of
from tests.ledger.race import Race
from tests.ledger.race.books import assert_lost
from tests.locks.actor import eventually

pytestmark = [
    pytest.mark.usefixtures("committed_db"),
    pytest.mark.skipif(
        not os.environ.get("ZOOKEEPER_HOSTS") and bool(zookeeper.available()),
        reason=f"{zookeeper.available()}",
    ),
]
SESSION = 10.0


@pytest.fixture(scope="module")
def hosts() -> Iterator[str]:
    if given := os.environ.get("ZOOKEEPER_HOSTS"):
        yield given
        return
    with ZooKeeper() as server:
        yield server.url
        client_of(server.url, SESSION).stop()


@pytest.fixture(autouse=True)
def known(hosts: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "ZOOKEEPER_HOSTS", hosts)


def end_session_of_holder(hosts: str, name: str) -> None:
    """What the server does when the holder's session expires: its node, the lowest, is gone."""
    client, path = client_of(hosts, SESSION), f"/locks/{name}"
    client.delete(f"{path}/{min(client.get_children(path), key=lambda node: node[-10:])}")


@pytest.mark.deep
def test_a_waiter_that_is_interrupted_leaves_no_place_in_the_queue(
    hosts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while it waits: its session lives on, so its node would stand there, and everyone would wait behind it.
    Not before: kazoo takes an interrupt in the midst of a request for the connection's end."""
    holder, waiter = (ZooKeeperLock("interrupted", zookeeper=hosts, lease=SESSION) for _ in range(2))
    client, main = client_of(hosts, SESSION), threading.main_thread().ident
    usual, waits = Alarm.wait, threading.Event()

    def wait(self: Alarm, timeout: float | None = None) -> bool:
        waits.set()
        return usual(self, timeout)

    def interrupt() -> None:
        assert waits.wait(30)
        signal.pthread_kill(main or 0, signal.SIGINT)

    with holder:
        monkeypatch.setattr(Alarm, "wait", wait)
        striker = threading.Thread(target=interrupt)
        striker.start()
        with pytest.raises(KeyboardInterrupt):
            waiter.acquire(timeout=60)
        striker.join()
        assert len(client.get_children(holder.path)) == 1


@pytest.mark.parametrize("request_", ["create", "get_children", "exists"])
def test_an_interrupt_at_each_reply_leaves_no_place_in_the_queue(
    hosts: str, request_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ensemble has done what was asked, and the interrupt comes before the answer is looked at."""
    lock, client = (
        ZooKeeperLock(f"interrupted-{request_}", zookeeper=hosts, lease=SESSION),
        client_of(hosts, SESSION),
    )
    with monkeypatch.context() as patch:
        patch.setattr(Asking, request_, interrupted(getattr(client, request_)), raising=False)
        with pytest.raises(KeyboardInterrupt):
            lock.acquire(timeout=30)
    assert client.get_children(lock.path) == []


def interrupted(ask: Callable[..., Any]) -> Callable[..., None]:
    def asks(_: Asking, *args: Any, **kwargs: Any) -> None:
        ask(*args, **kwargs)
        raise KeyboardInterrupt

    return asks


def test_an_interrupt_at_the_release_does_not_keep_the_lock(
    hosts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its session lives on, and no other code would release it."""
    lock, client = ZooKeeperLock("released", zookeeper=hosts, lease=SESSION), client_of(hosts, SESSION)
    assert lock.acquire(timeout=5)
    with monkeypatch.context() as patch:
        patch.setattr(Asking, "delete", interrupted(lambda *_: None), raising=False)
        with pytest.raises(KeyboardInterrupt):
            lock.release()
    assert client.get_children(lock.path) == []


def test_the_wait_time_is_kept_however_often_another_one_goes_before(hosts: str) -> None:
    """A waiter hears when the one before it gives up; its own time goes on, and does not start again."""
    holder, hasty, patient = (ZooKeeperLock("patience", zookeeper=hosts, lease=SESSION) for _ in range(3))
    client = client_of(hosts, SESSION)
    with holder, ThreadPoolExecutor(max_workers=1) as thread:
        gives_up = thread.submit(hasty.acquire, timeout=2.0)
        eventually(lambda: len(client.get_children(holder.path)) == 2, "two in the queue")
        started = time.monotonic()
        assert patient.acquire(timeout=2.5) is False
        assert 2.5 <= time.monotonic() - started < 4.0  # not nearly 4.5 s
        assert gives_up.result() is False


@pytest.mark.parametrize("timeout", [0.5, None])
def test_an_ensemble_that_falls_silent_is_reported(
    hosts: str, timeout: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request without a connection waits in the client until there is one: that may be for ever."""
    monkeypatch.setattr("locks.zookeeper_client.CONNECT", 1.0)
    with Proxy(int(hosts.rpartition(":")[2])) as proxy, ThreadPoolExecutor(max_workers=1) as thread:
        behind = f"127.0.0.1:{proxy.port}"
        lock, client = ZooKeeperLock("silence", zookeeper=behind, lease=SESSION), client_of(hosts, SESSION)
        with lock:
            pass
        proxy.cut()
        try:
            waiting = thread.submit(lock.acquire, timeout=timeout)
            with pytest.raises(LockUnavailable):
                waiting.result(20)
        finally:
            proxy.mend()
        eventually(lambda: client.get_children(lock.path) == [], "no place in the queue")
        client_of(behind, SESSION).stop()


def test_the_holder_is_the_session_that_made_the_node(hosts: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends when the ensemble has said that the node is there; the client has the next one before it is asked."""
    lease = SESSION + 1  # a client of its own
    lock, client = ZooKeeperLock("ended", zookeeper=hosts, lease=lease), client_of(hosts, lease)

    def ends(_: Asking, *args: Any) -> Any:
        stat, ended = client.exists(*args), client.client_id
        other = KazooClient(hosts, client_id=ended)
        other.start()
        other.stop()  # closes the session
        eventually(lambda: client.connected and client.client_id != ended, "the client has a new session")
        return stat

    with monkeypatch.context() as patch:
        patch.setattr(Asking, "exists", ends, raising=False)
        assert lock.acquire(timeout=5)
    assert not lock.held
    with pytest.raises(LockLost):
        lock.release()
    client.stop()


def test_a_forked_child_holds_nothing(hosts: str) -> None:
    """Its client has no thread that would ask: a release would wait for ever."""
    with ZooKeeperLock("forked", zookeeper=hosts, lease=SESSION) as lock:
        assert lock.held
        child = os.fork()
        if not child:
            signal.alarm(20)
            try:
                lock.release()
            except LockNotHeld:
                os._exit(int(lock.held))
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert lock.held


def lose(*_: Any, **__: Any) -> None:
    raise ConnectionLoss


def test_a_client_not_granted_while_replies_get_lost_hears_so_and_leaves_the_queue(
    hosts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kazoo says so by its answer then, not by its exception, and its own cleaning up is lost, too."""
    lock, client = ZooKeeperLock("flapping", zookeeper=hosts, lease=SESSION), client_of(hosts, SESSION)
    with monkeypatch.context() as patch:
        patch.setattr(Asking, "get_children", lose, raising=False)
        patch.setattr(Asking, "delete", lose, raising=False)
        assert lock.acquire(timeout=0.3) is False
    eventually(lambda: client.get_children(lock.path) == [], "no place in the queue")
    assert not lock.held


def test_a_connection_lost_at_the_release_does_not_keep_the_lock(
    hosts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session is the whole process's: it lives on, and with it would the node."""
    lock, client = ZooKeeperLock("blip", zookeeper=hosts, lease=SESSION), client_of(hosts, SESSION)
    assert lock.acquire(timeout=5)
    with monkeypatch.context() as patch:
        patch.setattr(Asking, "delete", lose, raising=False)
        with pytest.raises(LockUnavailable):
            lock.release()
    eventually(lambda: client.get_children(lock.path) == [], "no place in the queue")


@pytest.mark.parametrize("slug", ["zookeeper", "zookeeper-fenced"])
def test_the_second_one_waits_and_nothing_is_lost(slug: str) -> None:
    with Race(slug, timeout=5.0) as race:
        a, b = race.worker("A", +10).runs_to("think"), race.worker("B", +20)
        short = race.worker("short of patience", +30)
        short.strategy.settings = type(short.strategy.settings)(timeout=0.05)
        short.fails(Busy)
        a.finishes()
        b.finishes()
        assert (race.balance(), race.kept()) == (130, True)


def test_a_holder_whose_session_expired_overwrites(hosts: str) -> None:
    with Race("zookeeper") as race:
        a, b = race.worker("A", +10).runs_to("think"), race.worker("B", +20)
        end_session_of_holder(hosts, f"{race.book.pk}:A")
        b.finishes()
        assert "LockLost" in a.finishes().warning
        assert_lost(race, 20, by="A")


def test_the_ledger_refuses_its_older_number(hosts: str) -> None:
    with Race("zookeeper-fenced") as race:
        a, b = race.worker("A", +10).runs_to("think"), race.worker("B", +20)
        end_session_of_holder(hosts, f"{race.book.pk}:A")
        b.finishes()
        assert a.finishes().retries == 1
        assert (race.balance(), race.kept()) == (130, True)


def test_numbers_grow_when_the_parent_node_is_removed(hosts: str) -> None:
    numbers = []
    for _ in range(3):
        with ZooKeeperLock("growing", zookeeper=hosts) as lock:
            assert lock.held
            numbers.append(lock.fencing_token)
        client_of(hosts, SESSION).delete("/locks/growing", recursive=True)
    assert numbers == sorted(set(numbers))


def test_what_it_costs(hosts: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As its page says: 4 + 1."""
    lock, client, asked = ZooKeeperLock("cost", zookeeper=hosts, lease=SESSION), client_of(hosts, SESSION), []
    with lock:
        pass
    call = client._call

    def counts(request: Any, answer: Any) -> Any:
        asked.append(type(request).__name__)
        return call(request, answer)

    monkeypatch.setattr(client, "_call", counts)
    with lock:
        assert asked == ["Exists", "Create", "GetChildren", "Exists"]
    assert asked[4:] == ["Delete"]
    assert lock.round_trips.startswith("4 + 1")


def test_errors_say_what_happened(hosts: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = ZooKeeperLock("errors", zookeeper=hosts)
    with pytest.raises(LockNotHeld):
        lock.release()
    lock.acquire()
    end_session_of_holder(hosts, "errors")
    with pytest.raises(LockLost):
        lock.release()
    monkeypatch.setattr("locks.zookeeper_client.CONNECT", 0.3)
    with pytest.raises(LockUnavailable):
        ZooKeeperLock("errors", zookeeper="127.0.0.1:1").acquire()
