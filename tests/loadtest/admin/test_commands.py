"""explore, faults and trust from the admin: permissions, options, and results."""

from __future__ import annotations

import csv
import io
import re

import pytest

from ledger.strategies import known
from loadtest.background.commands import COMMAND_LINES, CommandRequest, _asked, _results
from loadtest.models import Result, Trial
from loadtest.report.pages.kinds import GROUPS, UNPROTECTED
from tests.ledger.test_admin import user

pytestmark = pytest.mark.usefixtures("committed_db")
BASE = "/admin/loadtest/trial/"


@pytest.fixture(autouse=True)
def _nothing_waits(committed_db: None) -> None:
    Trial.objects.filter(pk__in=COMMAND_LINES.waiting()).delete()


def asked(command: str, **form: object) -> Trial:
    """Request it as a user with the permission."""
    answer = user("loadtest.add_trial").post(f"{BASE}{command}/", form)
    assert answer.status_code == 302, answer.content.decode()
    (pk,) = COMMAND_LINES.waiting()
    return Trial.objects.get(pk=pk)


EXPLORE = {"workload": "deposits", "budget": 20, "workers": 2, "faults": 0}


@pytest.mark.deep
def test_an_exploration_runs_and_its_findings_are_kept_and_downloaded() -> None:
    row = asked("explore", strategies=["naive-lock"], **EXPLORE)
    page = user("loadtest.view_trial")
    assert "Nothing is found yet" in page.get(f"{BASE}{row.pk}/change/").content.decode()
    assert COMMAND_LINES.advance(row.pk)
    assert (COMMAND_LINES.waiting(), COMMAND_LINES.advance(row.pk)) == ([], False)
    assert dict(row.results.values_list("strategy", "verdict")) == {"no-lock": "lost", "naive-lock": "lost"}
    told = page.get(f"{BASE}{row.pk}/change/").content.decode()
    assert "hx-get" not in told
    assert "The smallest schedule that breaks it" in told
    lost = user("loadtest.view_result").get(
        f"/admin/loadtest/result/{row.results.get(strategy='naive-lock').pk}/change/"
    )
    why = lost.content.decode().partition("fieldset")[2].partition("<pre")[0]
    assert "A and B both read 100." in why  # the workers by their letters, and no clock that stood still
    assert '<span class="word lost">lost</span>' in why

    told = page.get(f"{BASE}{row.pk}/results.json").json()
    assert (told["command"], told["options"]["workers"], told["options"]["slack"]) == ("explore", 2, 100)
    lines = list(csv.reader(io.StringIO(page.get(f"{BASE}{row.pk}/results.csv").content.decode())))
    assert ["naive-lock", "contention", "lost", ""] in lines
    report = page.get(f"{BASE}{row.pk}/results.html")
    assert "attachment" in report["Content-Disposition"]
    shown = report.content.decode()
    assert "python manage.py explore --strategy naive-lock --faults 0 --budget 20" in shown
    assert "the real code of 2 workers" in shown
    assert not re.search(r'href="(?!#)', shown)  # it is one file: nothing lies beside it
    assert page.get(f"{BASE}{row.pk}/results.exe").status_code == 404


@pytest.mark.deep
def test_a_fault_cell_is_judged() -> None:
    row = asked("faults", strategies=["token"], hazards=["pause"])
    assert COMMAND_LINES.advance(row.pk)
    again = user("loadtest.view_trial").get(f"{BASE}{row.pk}/results.html").content.decode()
    assert "python manage.py faults --strategy token --hazard pause" in again
    words = {(r.strategy, r.data["hazard"]): r.verdict for r in row.results.all()}
    assert words["token", "pause"] == "lost"


def test_one_that_waits_is_stopped_at_once_and_one_that_is_stopped_begins_nothing() -> None:
    row = asked("explore", strategies=["setnx", "token"], **EXPLORE)
    stopper = user("loadtest.add_trial", "loadtest.view_trial")
    stopper.post(f"{BASE}{row.pk}/stop/")
    assert (COMMAND_LINES.waiting(), COMMAND_LINES.advance(row.pk)) == ([], False)
    assert not row.results.exists()
    assert "Not started" in stopper.get(f"{BASE}{row.pk}/change/").content.decode()


def test_only_what_the_form_offers_reaches_a_command_line() -> None:
    client = user("loadtest.add_trial")
    for command, form, says in (
        ("explore", {"strategies": ["os:system"], **EXPLORE}, "Select a valid choice"),
        ("explore", {"strategies": [], **EXPLORE}, "Choose a strategy"),
        ("explore", {"strategies": ["setnx"], **EXPLORE, "budget": 9999}, "less than or equal to 120"),
        ("explore", {"strategies": ["setnx"], **EXPLORE, "workload": "--help"}, "Select a valid choice"),
        ("faults", {"strategies": ["setnx"], "hazards": ["--lock"]}, "Select a valid choice"),
        ("faults", {"strategies": ["setnx"], "hazards": []}, "Choose 1 to 8 hazards"),
        (
            "trust",
            {"strategies": ["setnx", "token", "fenced"], "hazards": ["pause"], "budget": 20},
            "2 strategies",
        ),
    ):
        answer = client.post(f"{BASE}{command}/", form)
        assert (answer.status_code, says in answer.content.decode()) == (200, True), (command, form)
    for wrong in ("os:system", "--lock"):
        with pytest.raises(ValueError, match="not offered"):
            COMMAND_LINES.begin(CommandRequest(command="explore", strategies=(wrong,)))
    assert not COMMAND_LINES.waiting()


def test_the_control_that_comes_with_every_strategy_is_kept_once() -> None:
    row = COMMAND_LINES.begin(CommandRequest(command="explore", strategies=("setnx", "token")))
    asked_for = _asked(row)
    for slug in asked_for.strategies:
        results = [{"strategy": "no-lock", "verdict": "lost"}, {"strategy": slug, "verdict": "lost"}]
        for result in _results(row, asked_for, slug, {"results": results, "environment": {}}):
            result.save()
    found = Result.objects.filter(trial=row).values_list("strategy", flat=True)
    assert sorted(found) == ["no-lock", "setnx", "token"]


def test_a_command_that_leaves_no_file_has_failed() -> None:
    row = COMMAND_LINES.begin(CommandRequest(command="explore", strategies=("setnx",)))
    (result,) = _results(row, _asked(row), "setnx", {"reason": "it ended with 2: no room"})
    assert (result.verdict, result.data["reason"]) == ("not-run", "it ended with 2: no room")


def test_the_strategies_are_grouped_by_kind_each_once_and_a_link_names_one() -> None:
    page = user("loadtest.add_trial").get(f"{BASE}faults/?strategy=fenced").content.decode()
    boxes = re.findall(r'<input[^>]*name="strategies"[^>]*>', page)
    assert sorted(re.findall(r'value="([^"]+)"', " ".join(boxes))) == sorted(known())
    assert [
        re.findall(r'value="([^"]+)"', each) for each in boxes if " checked" in each.replace("checked:", "")
    ] == [["fenced"]]
    kinds = re.findall(r'<details class="kind" data-kind="([^"]*)"', page)
    assert kinds[0] == ""  # the six to begin with
    assert set(kinds[1:]) <= {*GROUPS, UNPROTECTED}
    assert len(kinds) > 6
    assert "SIGSTOP of the holder" in page  # each hazard says what happens
    odd = user("loadtest.add_trial").get(f"{BASE}faults/?strategy=os:system").content.decode()
    assert "os:system" not in odd
