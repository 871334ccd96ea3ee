"""Which reply is lost: by real servers and clients, and by the bytes of requests."""

import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from loadtest.faults.cell import Cell
from loadtest.faults.hazards import ADVERSARIES
from loadtest.faults.hazards.lost_reply import LostReply
from loadtest.faults.matrix import MatrixPlan, matrix
from loadtest.faults.scene.proxy import Proxy, commands
from loadtest.faults.scene.scene import Scene
from loadtest.faults.scene.site import private_servers
from loadtest.faults.workers.crew import CrewWorker
from loadtest.faults.workers.way import AsItComes
from loadtest.servers import Valkey

LOST = {
    "redis-watch": ("HSET RPUSH SET EXEC", "HSET RPUSH SET EXEC"),
    "compare-and-delete": ("DELIFEQ", "SET"),
}


class Few(MatrixPlan):
    def cells(self) -> list[Cell]:
        lost = ADVERSARIES["lost-reply"]
        return [Cell(slug, lost) for slug in ("no-lock", *LOST)]


class Reentrant(MatrixPlan):
    def cells(self) -> list[Cell]:
        return [Cell(slug, ADVERSARIES["lost-reply-retried"]) for slug in ("no-lock", "reentrant")]


@pytest.fixture
def proxy(valkey_server: Callable[..., Valkey]) -> Iterator[Proxy]:
    with Proxy(valkey_server(port=0).port) as proxy:
        yield proxy


def test_the_names_of_commands_are_not_looked_for_in_their_arguments() -> None:
    one = b"*3\r\n$3\r\nset\r\n$3\r\nGET\r\n$4\r\n\r\n*1\r\n"
    assert commands(one + b"*1\r\n$4\r\nEXEC\r\n") == ["SET", "EXEC"]
    assert commands(one[:7]) == []
    assert commands(b"the rest of an argument") == []


def test_reads_are_spared_and_a_set_that_returns_the_old_value_is_not(proxy: Proxy) -> None:
    client = Redis(port=proxy.port, retry=None)
    client.ping()
    proxy.swallow()
    client.hgetall("none")
    with client.pipeline() as pipe:
        pipe.watch("none")
    assert not proxy.swallowed
    with pytest.raises(RedisConnectionError):
        client.execute_command("SET", "key", "get", "NX", "GET")
    assert proxy.swallowed == ["SET"]
    assert client.get("key") == b"get"


def test_redis_py_as_it_comes_sends_a_second_time(proxy: Proxy) -> None:
    client = AsItComes.from_url(proxy.url, retry=None)
    client.ping()
    proxy.swallow()
    assert client.incr("counter") == 2


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_the_dangerous_replies_are_lost(django_db_setup: None, django_db_blocker: Any) -> None:
    plan = Few(strategies=(), hazards=(), seed=7)
    with django_db_blocker.unblock(), private_servers() as site:
        told = {each["strategy"]: each for each in matrix(plan, site)}
    for slug, (end, begin) in LOST.items():
        proof = told[slug]["fired"]["lost-reply"]
        assert f"reply to {end} lost at its end" in proof
        assert f"reply to {begin} lost at its beginning" in proof


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_a_lock_that_is_held_by_a_lost_reply_is_held_on_a_machine_that_stood_still(
    django_db_setup: None, django_db_blocker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its renewal comes a second late: with a lease of a second it was over, and the cell kept."""
    lost = LostReply.lost

    def and_stands_still(self: LostReply, scene: Scene, worker: CrewWorker, when: str) -> None:
        lost(self, scene, worker, when)
        # after the first loss, an old renewal that wakes late would ask, and lose its reply, in place of the acquire
        if when == "at its beginning":
            worker.stop()
            time.sleep(1.2)
            worker.signal(signal.SIGCONT)

    monkeypatch.setattr(LostReply, "lost", and_stands_still)
    with django_db_blocker.unblock(), private_servers() as site:
        cells = {each["strategy"]: each for each in matrix(Reentrant(strategies=(), hazards=()), site)}
    assert cells["reentrant"]["verdict"] == "stalled", cells["reentrant"]["timeline"]
