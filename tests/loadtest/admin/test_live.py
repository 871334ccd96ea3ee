"""What is drawn while a comparison runs and after it, on its page and on the start page."""

from __future__ import annotations

import re

import pytest
from django.utils import timezone

from ledger.books import open_book, post
from ledger.models import Account
from ledger.posting import Line, Posting
from loadtest.admin import live
from loadtest.models import Result, Trial
from loadtest.swarm.compare import Comparison
from tests.ledger.test_admin import user

pytestmark = pytest.mark.usefixtures("committed_db")


@pytest.fixture
def trial() -> Trial:
    """A load test that runs its second strategy, which has lost 5 so far."""
    book = open_book("setnx", [("A1", 100, None)])
    post(book, Posting("k1", (Line("A1", 5),)))
    Account.objects.filter(book=book).update(balance=100, version=0, head=None)  # as if B had read before
    post(book, Posting("k2", (Line("A1", 7),)))
    options = {"strategies": ["no-lock", "setnx", "token"], "done": 1, "at": 1, "book": str(book.pk)}
    options |= {
        "stores": ["postgres"] * 3,
        "plan": Comparison(strategies=("no-lock", "setnx", "token")).as_json(),
    }
    return Trial.objects.create(command="swarm", workload="deposits", store="postgres", options=options)


def page(trial: Trial) -> str:
    return user("loadtest.view_trial").get(f"/admin/loadtest/trial/{trial.pk}/results/").content.decode()


def test_the_running_strategy_is_drawn_as_it_goes(trial):
    told = page(trial)
    assert "setnx: postings/s" in told
    assert "Minor units missing from the balances, at the end 5" in told
    assert not re.search(r"<style|<script|[ \n]style=", told)
    start = user("loadtest.view_trial").get("/admin/").content.decode()
    assert "setnx: postings/s" in start
    assert 'hx-select="#last"' in start


@pytest.mark.parametrize("change", [{"at": None}, {"book": ""}, {"imports": {}}])
def test_nothing_is_drawn_of_what_is_not_there(trial, change):
    trial.options |= change
    if change == {"book": ""}:
        del trial.options["book"]
    assert live.running(trial) == []


def test_what_is_judged_is_drawn_with_what_it_lost(trial):
    trial.ended = timezone.now()
    trial.save()
    for strategy, lost, rate in ("no-lock", 1234567, 50.0), ("token", 0, 20.0):
        data = {
            "strategy": strategy,
            "verdict": "x",
            "ops_per_s": rate,
            "lost_amount": lost,
            "latency_ms": {},
        }
        Result.objects.create(trial=trial, strategy=strategy, verdict="lost" if lost else "kept", data=data)
    told = page(trial)
    assert "Postings per second: no-lock 50; token 20" in told
    assert "Minor units lost: no-lock 1,234,567; token 0" in told
    assert "loses money" in told
    assert "loses nothing" in told


def test_a_result_alone_or_without_figures_is_not_drawn():
    measured = {"strategy": "token", "ops_per_s": 5.0, "lost_amount": 0}
    assert live.judged([measured, {"strategy": "setnx", "verdict": "not-run"}]) == []
    assert [title for title, _ in live.judged([measured, {**measured, "strategy": "setnx"}])] == [
        "Postings/s"
    ]


def test_the_set_based_import_is_named_beside_the_chart_that_it_would_flatten():
    line = {"ops_per_s": 100.0, "lost_amount": 0, "store": "postgres"}
    rows = [{**line, "strategy": "token"}, {**line, "strategy": "setnx"}]
    bulk = {**line, "strategy": "select-for-update", "way": "set-based", "ops_per_s": 1865.2}
    [(title, drawing)] = live.judged([*rows, bulk])
    assert title == "Postings/s (not drawn: set-based import, 1,865)"
    assert "Postings per second: token 100; setnx 100" in drawing
    assert "2,000" not in drawing


def test_the_page_names_a_hazard_only_where_there_is_one_and_says_what_expected_contains(trial):
    here = f"/admin/loadtest/trial/{trial.pk}/change/"
    reader = user("loadtest.view_trial")
    assert "adversary" not in reader.get(here).content.decode()
    assert "hazard:" not in reader.get(here).content.decode()
    assert "charges of the scheduled scan" not in reader.get(here).content.decode()
    Result.objects.create(trial=trial, strategy="no-lock", verdict="lost", data={"verdict": "lost"})
    trial.adversary = "pause"
    trial.options |= {"scan": True}
    trial.save()
    told = reader.get(here).content.decode()
    assert "hazard: pause" in told
    assert "Expected includes the charges of the scheduled scan" in told
    listed = reader.get("/admin/loadtest/trial/?adversary=pause").content.decode()
    assert re.search(r"field-hazard[^>]*>\s*pause\s*<", listed)
    assert not re.search(r">[^<]*adversary[^<]*<", listed, re.IGNORECASE)


def test_the_start_page_tells_who_may_not_see_trials_nothing(trial):
    assert "The last comparison" not in user().get("/admin/").content.decode()
