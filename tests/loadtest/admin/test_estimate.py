"""The time that a comparison will take, said before it is sent."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from loadtest.models import Result, Trial
from tests.ledger.test_admin import anonymous, user

pytestmark = pytest.mark.usefixtures("committed_db")
PAGE = "/admin/loadtest/trial/{}/"


@pytest.fixture(autouse=True)
def _nothing_was_measured(committed_db: None) -> None:
    Trial.objects.filter(command__in=("swarm", "import", "explore", "faults", "trust")).delete()


def told(page: str, **fields: object) -> str:
    before = Trial.objects.count()
    answer = user("loadtest.add_trial").post(PAGE.format(page), {"estimate": "1", **fields})
    assert Trial.objects.count() == before, "it was only asked how long it takes"
    return answer.content.decode()


def test_each_strategy_and_the_control_take_their_seconds():
    chosen = {"workload": "deposits", "seconds": 10, "strategies": ["token", "setnx"]}
    said = told("swarm", **chosen)
    assert "3 runs of about 14 s each: about 42 s in all, on a free machine." in said
    assert "no-lock is not ticked and runs all the same" in said
    assert "not ticked" not in told("swarm", **{**chosen, "strategies": ["no-lock", "token"]})
    assert "2 runs" in told("swarm", **{**chosen, "strategies": ["no-lock", "token"]})


def test_a_strategy_on_another_store_brings_the_control_there():
    said = told("swarm", workload="deposits", seconds=1, strategies=["no-lock", "redis-atomic"])
    assert "3 runs of about 5 s" in said


@pytest.mark.parametrize("seconds", ["", "x", "1e", "nan", "inf"])
def test_what_is_not_written_to_its_end_is_no_error(seconds):
    assert "2 runs of about" in told("swarm", workload="deposits", seconds=seconds, strategies=["token"])


def test_the_last_load_test_here_is_the_measure():
    started = timezone.now()
    last = Trial.objects.create(
        command="swarm",
        workload="deposits",
        store="postgres",
        ended=started,
        options={"plan": {"seconds": 5.0}},
    )
    for number, strategy in enumerate(("no-lock", "token", "setnx")):
        result = Result.objects.create(trial=last, strategy=strategy, verdict="kept")
        Result.objects.filter(pk=result.pk).update(created=started + timedelta(seconds=20 * number))
    said = told("swarm", workload="deposits", seconds=5, strategies=["no-lock"])
    assert "1 run of about 20 s, as the last one took here." in said
    assert "1 run of about 25 s" in told("swarm", workload="deposits", seconds=10, strategies=["no-lock"])


def test_commands_count_their_hazards_and_what_waits_before_them():
    assert "2 runs of about 12 s" in told(
        "faults", strategies=["token", "setnx"], hazards=["pause", "crash-holding"]
    )
    Trial.objects.create(command="explore", workload="deposits", store="postgres", options={"done": 0})
    answer = user("loadtest.add_trial").post(
        PAGE.format("explore"), {"estimate": "1", "strategies": ["token"]}
    )
    assert "It waits for 1 other measurement to end." in answer.content.decode()


def test_imports_count_the_set_based_one():
    six = ["no-lock", "naive-lock", "setnx", "watchdog", "select-for-update", "optimistic-version"]
    assert "7 runs" in told("compare", strategies=six)
    assert "2 runs" in told("compare", strategies=["token"])


@pytest.mark.parametrize("page", ["swarm", "compare", "explore", "faults", "trust"])
def test_who_may_not_start_one_is_told_nothing(page):
    assert user().post(PAGE.format(page), {"estimate": "1"}).status_code == 403
    assert anonymous().post(PAGE.format(page), {"estimate": "1"}).status_code == 302
