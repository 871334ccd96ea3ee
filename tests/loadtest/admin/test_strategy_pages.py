"""The page of a strategy in the admin: what it says of itself, and what came of it. Verdicts lead there."""

from __future__ import annotations

import html
import re

import pytest
from django.urls import reverse

from ledger.books import open_book
from ledger.strategies import STRATEGIES
from loadtest.faults.sentences import CONTENTION, about
from loadtest.models import Result, Trial
from locks.hazards import Hazard
from tests.ledger.test_admin import user

pytestmark = pytest.mark.usefixtures("committed_db")


def text_of(address: str, *permissions: str) -> str:
    answer = user(*permissions).get(address)
    assert answer.status_code == 200, answer
    return html.unescape(answer.content.decode())


@pytest.mark.deep
def test_every_strategy_has_a_page_with_its_own_words() -> None:
    client = user()
    for slug, found in STRATEGIES.items():
        page = html.unescape(client.get(reverse("admin:loadtest_strategy", args=[slug])).content.decode())
        assert found.guarantees in page
        assert found.breaks_when in page
        textbook = page[page.index("From its source file</h2>") :]
        assert re.search(r"^Guarantees .*^Breaks when .*^Source ", textbook, re.MULTILINE | re.DOTALL), slug


def test_a_lock_has_its_own_page_and_not_the_one_that_all_locks_share() -> None:
    assert "watchdog: " in text_of(reverse("admin:loadtest_strategy", args=["watchdog"]))


def test_every_hazard_has_a_sentence() -> None:
    told = {hazard: about(hazard) for hazard in Hazard}
    assert [hazard for hazard, sentence in told.items() if len(sentence) < 20] == []
    assert [hazard for hazard, sentence in told.items() if sentence == CONTENTION] == [Hazard.CONTENTION]


def test_the_list_leads_to_every_page() -> None:
    page = text_of(reverse("admin:loadtest_strategies"))
    for slug in STRATEGIES:
        assert f'href="{reverse("admin:loadtest_strategy", args=[slug])}"' in page


@pytest.mark.parametrize("slug", ["nonesuch", "os:getcwd", "loadtest.demo:main"])
def test_what_is_no_strategy_has_no_page(slug: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ledger.strategies.find_lock", lambda slug: pytest.fail("an address imports nothing"))
        answer = user().get(f"/admin/loadtest/trial/strategies/{slug}/", follow=True)
    assert answer.status_code in (403, 404)  # 403: taken for the key of a trial, which this user may not see


def test_a_verdict_leads_to_the_strategy_and_the_strategy_to_its_verdicts() -> None:
    trial = Trial.objects.create(command="compare", workload="deposits", store="postgres")
    cause = "only this one lost 17"
    Result.objects.create(trial=trial, strategy="watchdog", verdict="lost", data={"cause": cause})
    strategy = reverse("admin:loadtest_strategy", args=["watchdog"])
    shown = reverse("admin:loadtest_trial_change", args=[trial.pk])
    assert f'href="{strategy}"' in text_of(shown, "loadtest.view_trial")
    page = text_of(strategy, "loadtest.view_trial", "loadtest.view_result")
    assert cause in page
    assert f'href="{shown}"' in page
    assert cause not in text_of(strategy)


def test_a_book_links_to_its_strategy_and_a_third_party_lock_has_no_page() -> None:
    book = open_book("watchdog", [("A", 100, None)])
    address = reverse("admin:ledger_book_change", args=[book.pk])
    strategy = f'href="{reverse("admin:loadtest_strategy", args=["watchdog"])}"'
    assert strategy in text_of(address, "ledger.view_book")
    foreign = open_book("tests.loadtest.third_party:right", [("A", 100, None)], trusted=True)
    page = text_of(reverse("admin:ledger_book_change", args=[foreign.pk]), "ledger.view_book")
    assert "tests.loadtest.third_party:right" in page


def test_the_list_is_filtered_and_sorted_by_what_was_found() -> None:
    address = reverse("admin:loadtest_strategies")
    page = text_of(f"{address}?f_withstands=crash-pause&f_store=postgres")
    assert "select-for-update</code>" in page
    assert "<code>token</code>" not in page
    assert "No strategy fits" in text_of(f"{address}?f_text=nonesuch")
    page = text_of(f"{address}?sort=lost")
    assert page.index("<code>no-lock</code>") < page.index("<code>fenced</code>")
    assert "kept 1" in page
