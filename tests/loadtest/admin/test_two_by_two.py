"""Two rows are ticked in a list and compared: on a page, as JSON, as CSV."""

from __future__ import annotations

import csv
import io

import pytest

from loadtest.models import Result, Trial
from tests.ledger.test_admin import user

pytestmark = pytest.mark.usefixtures("committed_db")
TRIALS, RESULTS = "/admin/loadtest/trial/", "/admin/loadtest/result/"


def trial(users: int, verdict: str, rate: float, lost: int) -> Trial:
    options = {"plan": {"users": users, "settings": {"poll": 0.01}}, "done": 1, "at": None}
    made = Trial.objects.create(command="swarm", workload="deposits", store="postgres", options=options)
    data = {"ops_per_s": rate, "lost_amount": lost}
    Result.objects.create(trial=made, strategy="token", verdict=verdict, data=data)
    return made


@pytest.fixture
def both() -> list[Trial]:
    return [trial(8, "kept", 50.0, 0), trial(16, "lost", 25.0, 1234)]


def ticked(rows: list[int]) -> dict[str, object]:
    return {"action": ["", "compare_two"], "index": "1", "_selected_action": rows}


def test_two_ticked_trials_are_shown_side_by_side(both):
    root = user("loadtest.view_trial")
    assert 'value="compare_two"' in root.get(TRIALS).content.decode()
    answer = root.post(TRIALS, ticked([each.pk for each in reversed(both)]))
    assert answer["Location"] == f"{TRIALS}compared/{both[0].pk}/{both[1].pk}/"  # the older one first
    page = root.get(answer["Location"]).content.decode()
    for told in ("1 of 1 changed", "50.0 → 25.0", "0.50 ×", "0 → 1,234", "+1,234", "<code>users</code>"):
        assert told in page
    assert "<code>poll</code>" not in page  # it does not differ
    assert "<code>done</code>" not in page


def test_the_same_as_json_and_csv(both):
    root = user("loadtest.view_trial")
    base = f"{TRIALS}compared/{both[0].pk}/{both[1].pk}"
    told = root.get(f"{base}.json").json()
    assert told["conditions"] == [{"name": "users", "first": "8", "second": "16"}]
    (pair,) = told["pairs"]
    assert (pair["strategy"], pair["changed"], pair["throughput_ratio"], pair["more_lost"]) == (
        "token",
        True,
        0.5,
        1234,
    )
    (row,) = csv.DictReader(io.StringIO(root.get(f"{base}.csv").content.decode()))
    assert (row["first_verdict"], row["second_lost_amount"], row["throughput_ratio"]) == (
        "kept",
        "1234",
        "0.5",
    )
    assert root.get(f"{base}.xml").status_code == 404
    assert root.get(f"{TRIALS}compared/{both[0].pk}/999999999/").status_code == 404


@pytest.mark.parametrize("count", [1, 3])
def test_other_than_two_are_refused_with_what_to_do(both, count):
    rows = [*both, trial(1, "kept", 1, 0)][:count]
    page = user("loadtest.view_trial").post(TRIALS, ticked([each.pk for each in rows]), follow=True)
    assert "Tick two rows" in page.content.decode()


def test_two_results_are_shown_with_all_figures(both):
    root = user("loadtest.view_result")
    rows = [each.results.get().pk for each in both]
    page = root.post(RESULTS, ticked(rows), follow=True).content.decode()
    assert "lost_amount" in page
    assert "minor units" in page
    assert user("loadtest.view_trial").get(f"{RESULTS}compared/{rows[0]}/{rows[1]}/").status_code == 403


def test_nothing_can_be_deleted_from_the_list(both):
    rows = {**ticked([both[0].pk]), "action": "delete_selected", "index": "0", "post": "yes"}
    root = user("loadtest.view_trial", "loadtest.delete_trial", "loadtest.change_trial")
    root.post(TRIALS, rows)
    assert Trial.objects.filter(pk=both[0].pk).exists()
