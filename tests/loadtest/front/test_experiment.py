"""The experiment of the front page: real, small, one at a time."""

from __future__ import annotations

import html
import threading
from collections.abc import Iterator

import pytest
from django.db import connection
from django.test import Client

from ledger.strategies import Settings, find
from loadtest.front import experiment
from loadtest.models import Trial

pytestmark = pytest.mark.usefixtures("committed_db")


@pytest.fixture(autouse=True)
def nobody_else(committed_db: None) -> Iterator[None]:
    Trial.objects.filter(command=experiment.COMMAND).delete()
    yield
    for each in threads():
        each.join()
    connection.close()


def threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith("experiment ")]


def client() -> Client:
    return Client(headers={"host": "localhost"})


def test_ten_workers_lose_without_a_lock_and_lose_nothing_with_one() -> None:
    row = experiment.begin("select-for-update")
    (thread,) = threads()
    thread.join()
    row.refresh_from_db()
    seen = experiment.seen(row)
    free, locked = seen["sides"]
    assert seen["over"]
    assert free["result"].verdict == "lost"
    assert free["balance"] + free["lost"] >= free["answered"] == experiment.WORKERS
    assert free["lost"] == sum(cell["lost"] for cell in free["cells"]) > 0
    assert (locked["result"].verdict, locked["balance"], locked["lost"]) == ("kept", experiment.WORKERS, 0)
    assert ":worker-" not in free["told"]  # the host and the process say nothing to a visitor

    page = html.unescape(client().get(f"/experiments/{row.pk}/").content.decode())
    assert "data-next" not in page
    assert f"{free['lost']} lost" in page


def test_one_at_a_time_and_so_many_a_minute() -> None:
    running = Trial.objects.create(command=experiment.COMMAND, workload="deposits", store="postgres")
    with pytest.raises(experiment.NotNow, match="another visitor"):
        experiment.begin("setnx")
    experiment.records.close(running)
    for _ in range(experiment.MOST_A_MINUTE - 1):
        experiment.records.close(
            Trial.objects.create(command=experiment.COMMAND, workload="deposits", store="postgres")
        )
    with pytest.raises(experiment.NotNow, match="within a minute"):
        experiment.begin("setnx")
    answer = client().post("/experiments/", {"strategy": "setnx"})
    assert answer.status_code == 429
    assert "wait for a moment" in answer.content.decode()
    assert not threads()


@pytest.mark.parametrize("asked", ["", "no-lock", "in-process", "os:getcwd", "x' OR 1=1"])
def test_only_what_is_offered_can_be_started(asked: str) -> None:
    assert client().post("/experiments/", {"strategy": asked}).status_code == 400
    assert not Trial.objects.filter(command=experiment.COMMAND).exists()


def test_a_visitor_without_the_token_starts_nothing() -> None:
    strict = Client(headers={"host": "localhost"}, enforce_csrf_checks=True)
    assert strict.post("/experiments/", {"strategy": "setnx"}).status_code == 403
    assert strict.get("/").status_code == 200
    assert not Trial.objects.filter(command=experiment.COMMAND).exists()


def test_every_strategy_that_is_offered_takes_its_settings() -> None:
    settings = {"think": list(experiment.THINK), "poll": experiment.POLL, "timeout": experiment.TIMEOUT}
    offered = experiment.offered()
    assert {"select-for-update", "fenced", "token", "redis-atomic"} <= set(offered)
    for slug in offered:
        find(slug).check(Settings.of(settings))


def test_an_experiment_whose_process_was_killed_is_over_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = Trial.objects.create(
        command=experiment.COMMAND,
        workload="deposits",
        store="postgres",
        options={"strategies": ["no-lock", "setnx"], "books": {}},
    )
    assert not experiment.seen(row)["over"]
    monkeypatch.setattr(experiment, "LATEST", 0.0)
    assert experiment.seen(row)["cut"]
