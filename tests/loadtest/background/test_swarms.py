"""The admin's swarms: requested in a form, run trial after trial by any free worker, judged as `compare` judges."""

from __future__ import annotations

import psycopg
import pytest
from django.db import connection

from loadtest.background.runner import LOCK
from loadtest.background.swarms import SWARMS
from loadtest.models import Trial
from loadtest.swarm.compare import Comparison
from loadtest.workloads import WORKLOADS
from tests.ledger.test_admin import anonymous, importer, user

pytestmark = pytest.mark.usefixtures("committed_db")
URL = "/admin/loadtest/trial/swarm/"
FORM = {
    "workload": "deposits",
    "users": 16,
    "seconds": 3,
    "accounts": 1,
    "think": 5,
    "poll": 10,
    "strategies": ["select-for-update"],
}


@pytest.fixture(autouse=True)
def _nothing_waits(committed_db: None) -> None:
    Trial.objects.filter(pk__in=SWARMS.waiting()).delete()


@pytest.mark.whole_command
def test_a_swarm_runs_trial_after_trial_and_is_judged():
    answer = user("loadtest.add_trial", "loadtest.view_trial").post(URL, FORM)
    (pk,) = SWARMS.waiting()
    assert answer["Location"] == f"/admin/loadtest/trial/{pk}/change/"
    assert SWARMS.advance(pk)
    assert SWARMS.waiting() == [pk]
    page = user("loadtest.view_trial").get(answer["Location"]).content.decode()
    assert "hx-get" in page  # it looks again by itself …
    assert SWARMS.advance(pk)
    assert (SWARMS.waiting(), SWARMS.advance(pk)) == ([], False)
    verdicts = list(Trial.objects.get(pk=pk).results.values_list("strategy", "verdict"))
    assert verdicts == [("no-lock", "lost"), ("select-for-update", "kept")]
    page = user("loadtest.view_trial").get(answer["Location"]).content.decode()
    assert "hx-get" not in page  # … until it has ended
    assert "who overwrote whom" in page


@pytest.mark.deep
def test_a_stopped_swarm_keeps_what_it_has_and_begins_no_more():
    user("loadtest.add_trial").post(URL, FORM)
    (pk,) = SWARMS.waiting()
    page, stop = f"/admin/loadtest/trial/{pk}/change/", f"/admin/loadtest/trial/{pk}/stop/"
    assert stop not in user("loadtest.view_trial").get(page).content.decode()
    assert SWARMS.advance(pk)
    stopper = user("loadtest.add_trial", "loadtest.view_trial")
    assert stop in stopper.get(page).content.decode()
    assert stopper.post(stop)["Location"] == page
    assert (SWARMS.waiting(), SWARMS.advance(pk)) == ([], False)
    assert list(Trial.objects.get(pk=pk).results.values_list("strategy", flat=True)) == ["no-lock"]
    told = stopper.get(page).content.decode()
    assert "not started" in told
    assert stop not in told
    assert "The comparison has already ended." in stopper.post(stop, follow=True).content.decode()


def test_a_swarm_that_waits_is_stopped_at_once():
    """It would hold one of its user's few places until the swarm before it has ended."""
    user("loadtest.add_trial").post(URL, FORM)
    (pk,) = SWARMS.waiting()
    user("loadtest.add_trial", "loadtest.view_trial").post(f"/admin/loadtest/trial/{pk}/stop/")
    assert (SWARMS.waiting(), SWARMS.advance(pk)) == ([], False)


@pytest.mark.deep
def test_one_swarm_at_a_time_and_a_killed_workers_trial_is_free_again():
    row = SWARMS.begin(Comparison(strategies=("no-lock",), settings={"nonsense": 1}))
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as killed:
        killed.execute("SELECT pg_advisory_lock(%s, 0)", [LOCK])
        assert not SWARMS.advance(row.pk)
        assert SWARMS.waiting() == [row.pk]
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [killed.info.backend_pid])
    assert SWARMS.advance(row.pk)
    assert SWARMS.waiting() == []


@pytest.mark.deep
def test_a_trial_that_fails_is_not_run_with_its_reason_and_the_comparison_ends():
    row = SWARMS.begin(Comparison(strategies=("no-lock",), settings={"nonsense": 1}))
    assert SWARMS.advance(row.pk)
    (result,) = row.results.all()
    assert result.verdict == "not-run"
    assert "nonsense" in result.data["reason"]
    assert SWARMS.waiting() == []


@pytest.mark.parametrize(
    ("client", "status"),
    [(anonymous, 302), (user, 403), (importer, 403), (lambda: user("loadtest.add_trial"), 302)],
    ids=["anonymous", "staff", "importer", "comparer"],
)
def test_only_staff_with_the_permission_sends_a_swarm(client, status):
    answer = client().post(URL, FORM)
    assert answer.status_code == status
    assert len(SWARMS.waiting()) == (
        "/trial/" in answer.get("Location", "") and "login" not in answer["Location"]
    )


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"workload": "read-mostly", "read-mostly-reads": "2"}, "a share from 0 to 1"),
        ({"workload": "run-once", "run-once-days": "1.5"}, "Enter a whole number"),
        ({"workload": "run-once", "run-once-recorded": "perhaps"}, "Select a valid choice"),
        ({"workload": "theft"}, "Select a valid choice"),
        ({"strategies": ["os:system"]}, "Select a valid choice"),
        ({"users": 10_000}, "less than or equal to 64"),
        ({"seconds": 0}, "greater than or equal to 1"),
        ({"workload": "transfers", "accounts": 9_999}, "accounts"),
    ],
)
def test_a_bad_form_says_what_is_wrong_and_starts_nothing(wrong, problem):
    answer = user("loadtest.add_trial").post(URL, {**FORM, **wrong})
    assert answer.status_code == 200
    assert problem in answer.content.decode()
    assert SWARMS.waiting() == []


OTHER = {bool: lambda value: not value, int: lambda value: value + 1, float: lambda value: value / 2}


@pytest.mark.parametrize("workload", WORKLOADS)
def test_each_workload_has_a_field_for_each_of_its_options(workload):
    """The request is stored as the command stores its own: only what is not the default."""
    declared = WORKLOADS[workload].declared()
    assert [each.name for each in declared] == list(WORKLOADS[workload].options)
    wanted = {each.name: OTHER[each.kind](each.default) for each in declared}
    root = user("loadtest.add_trial")
    page = root.get(URL).content.decode()
    assert all(f'name="{workload}-{name}"' in page for name in wanted)
    for given, stored in ({}, {}), (wanted, wanted), ({each.name: each.default for each in declared}, {}):
        fields = {f"{workload}-{name}": str(value) for name, value in given.items()}
        root.post(URL, {**FORM, "workload": workload, "deposits-most": "", **fields})
        (pk,) = SWARMS.waiting()
        assert Trial.objects.get(pk=pk).options["plan"]["workload_options"] == stored
        Trial.objects.filter(pk=pk).delete()


def test_a_wrong_option_is_said_at_its_field():
    wrong = {**FORM, "workload": "stock", "stock-deliveries": "7"}
    page = user("loadtest.add_trial").post(URL, wrong).content.decode()
    said = page.index('id="id_stock-deliveries_error"')
    assert page.index("a share from 0 to 1", said) - said < 100
