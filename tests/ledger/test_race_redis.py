"""What the pages of `redis-atomic` and `redis-watch` say of the day they break, made to happen by gates."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from redis import Redis
from redis.client import Pipeline

from ledger.posting import Busy, Posting
from lost_update_lab.embedded.replication import ReplicaSet
from tests.ledger.race import Race, Worker
from tests.ledger.race.books import assert_lost

pytestmark = pytest.mark.usefixtures("committed_db")


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("slug", ["redis-atomic", "redis-watch"])
def test_what_a_failover_forgets_is_given_away_twice(slug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The replica had not seen the first withdrawal, whose caller got "done"."""
    with ReplicaSet(replicas=1) as servers:
        monkeypatch.setattr(import_module("ledger.stores.redis"), "redis_client", servers.client)
        with Race(slug, store="redis", floor=0) as race:
            servers.await_replication()
            old, (replica,) = servers.primary, servers.replicas
            servers.sever()
            race.worker("A", -60).finishes()
            old.kill()
            replica.resume()
            servers.await_failover(old)
            race.worker("B", -60).finishes()
            assert race.balance() == 40  # 120 of 100 were given away
            books = race.books()
            assert (books.lost_amount, books.lost_without_trace) == (60, 1)


def test_watch_gives_up_and_has_written_nothing() -> None:
    with Race("redis-watch", store="redis", retries=0) as race:
        a, b = race.worker("A", +10).runs_to("think"), race.worker("B", +20)
        b.finishes()
        a.fails(Busy)
        assert (race.balance(), race.kept()) == (120, True)


def test_a_read_before_the_watch_overwrites_who_wrote_between_the_two() -> None:
    with Race("redis-watch", store="redis") as race:
        a, b = reads_before_it_watches(race.worker("A", +10)).runs_to("has read"), race.worker("B", +20)
        b.finishes()
        assert a.finishes().retries == 0  # no client touched the key while it was watched
        assert_lost(race, 20, by="A")


def reads_before_it_watches(worker: Worker) -> Worker:
    store: Any = worker.strategy.store
    read_by, read = store.read_by, dict[str, Any]()

    def looks() -> None:
        read.update(read_by(store.redis, worker.posting))
        worker.passes("has read")

    worker.strategy.prepare = looks  # type: ignore[method-assign]
    store.read_by = lambda redis, posting: read
    return worker


def test_a_watch_that_went_with_its_connection_guards_nothing() -> None:
    """A client library that connects again by itself, between the read and EXEC, and says nothing."""
    with Race("redis-watch", store="redis") as race:
        a, pipes = with_its_pipeline(race.worker("A", +10))
        a.runs_to("think")
        pipes[0].connection.disconnect()  # the command that comes next connects again
        race.worker("B", +20).finishes()
        assert a.finishes().retries == 0
        assert_lost(race, 20, by="A")


def test_redis_py_notices_that_its_watch_is_gone_and_the_posting_starts_again(redis_client: Redis) -> None:
    with Race("redis-watch", store="redis") as race:
        a = race.worker("A", +10).runs_to("think")
        sessions = redis_client.client_list()
        (watching,) = (each["id"] for each in sessions if each["watch"] != "0")
        redis_client.client_kill_filter(_id=watching)
        race.worker("B", +20).finishes()
        assert a.finishes().retries == 1
        assert (race.balance(), race.kept()) == (130, True)


def with_its_pipeline(worker: Worker) -> tuple[Worker, list[Pipeline]]:
    """A worker, and where it puts the pipeline of each attempt."""
    store: Any = worker.strategy.store
    read_by, pipes = store.read_by, list[Pipeline]()

    def reads(pipe: Pipeline, posting: Posting) -> Any:
        pipes.append(pipe)
        return read_by(pipe, posting)

    store.read_by = reads
    return worker, pipes
