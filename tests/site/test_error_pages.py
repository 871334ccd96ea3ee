"""Error pages: why there is no page, and where to go on."""

from __future__ import annotations

import html
import re

import pytest
from django.test import Client
from django.urls import path, reverse

from ledger.books import open_book
from loadtest.models import Result, Trial
from tests.ledger.test_admin import user
from tests.site.page_rules import breaches
from tests.site.visitor import Visitor

pytestmark = pytest.mark.usefixtures("committed_db", "quiet")


def text(answer) -> str:
    return html.unescape(answer.content.decode())


def test_what_is_not_there_is_named() -> None:
    page = user("ledger.view_book").get("/admin/ledger/book/xyz/change/")
    assert (page.status_code, "no book xyz" in text(page)) == (404, True)
    assert 'href="/admin/"' in text(page)
    assert '<a href="/">' in text(user("ledger.view_book").get("/nothing"))
    page = user().get("/admin/nothing/")
    assert (page.status_code, "mistyped" in text(page)) == (404, True)


def test_a_refused_user_learns_who_can_help() -> None:
    page = user().get(reverse("admin:loadtest_trial_swarm"))
    assert (page.status_code, "lacks the permission" in text(page)) == (403, True)


def test_a_form_without_the_token_and_a_body_too_large_are_refused_in_the_labs_own_words(settings) -> None:
    """Django's own pages say less; that of the token has inline style, which the policy blocks."""
    strict = Client(headers={"host": "localhost"}, enforce_csrf_checks=True)
    for page, status, words in (
        (strict.post("/admin/login/", {"username": "u"}), 403, "the CSRF token"),
        (user().post("/admin/login/", {"x": "y" * settings.DATA_UPLOAD_MAX_MEMORY_SIZE}), 400, "Send less"),
    ):
        assert (page.status_code, words in text(page)) == (status, True)
        assert "nothing was done" in text(page)
        assert not breaches(page["Content-Security-Policy"], page.content.decode())


@pytest.mark.parametrize(
    ("route", "above"),
    [
        ("admin/loadtest/trial/<int:trial_id>/stop/", "/admin/loadtest/trial/{trial}/"),
        ("admin/ledger/importrun/<int:run_id>/stop/", "/admin/ledger/importrun/{importrun}/"),
        ("admin/ledger/importrun/<int:run_id>/retry/", "/admin/ledger/importrun/{importrun}/"),
        ("admin/loadtest/trial/compare/<int:run_id>/", "/admin/loadtest/trial/compare/"),
        ("admin/logout/", "/admin/"),
    ],
)
def test_a_link_to_what_a_button_sends_leads_to_the_buttons_page(
    route: str, above: str, rows_of: dict[str, object]
) -> None:
    visitor = Visitor(rows_of)
    page = visitor.ask("get", route, visitor.root)
    assert (page.status_code, page["Allow"].split(", ")[0]) == (405, "POST")
    assert "nothing was done" in text(page)
    (link,) = re.findall(r'<a href="([^"]+)">its page<', text(page))
    assert link == above.format(**rows_of)
    assert visitor.client.get(link, follow=True).status_code == 200
    assert not visitor.breaches


def test_what_is_sent_to_a_page_that_only_shows_is_answered_with_a_link_to_it(rows_of) -> None:
    visitor = Visitor(rows_of)
    page = visitor.ask("post", "admin/password_change/done/", visitor.root)
    assert page.status_code == 405
    assert 'href="/admin/password_change/done/">Open it<' in text(page)


class Urls:
    urlpatterns = [path("fails/", lambda request: 1 / 0)]


def test_a_failure_does_not_say_that_nothing_was_done(settings) -> None:
    settings.ROOT_URLCONF = Urls
    page = Client(headers={"host": "localhost"}, raise_request_exception=False).get("/fails/")
    assert (page.status_code, "may or may not have been carried out" in text(page)) == (500, True)


def test_a_result_leads_to_its_evidence() -> None:
    result = lost()
    page = text(user("loadtest.view_result").get(reverse("admin:loadtest_result_change", args=[result.pk])))
    assert reverse("admin:loadtest_strategy", args=["watchdog"]) in page
    assert "17 lost" in page
    assert '<pre class="textbook">' in page  # wraps: a long sentence made the page 2,200 pixels wider


def test_a_trial_whose_book_is_gone_is_shown() -> None:
    page = user("loadtest.view_trial").get(reverse("admin:loadtest_trial_change", args=[lost().trial_id]))
    assert (page.status_code, "17 lost" in text(page)) == (200, True)


def lost() -> Result:
    trial = Trial.objects.create(command="compare", workload="deposits", store="postgres")
    data = {"cause": "17 lost", "worst_account": "A1"}
    return Result.objects.create(trial=trial, strategy="watchdog", verdict="lost", data=data)


def test_a_book_without_a_posting_is_not_reported_as_without_loss() -> None:
    book = open_book("no-lock", [("A1", 100, None)])
    page = text(user("ledger.view_book").get(reverse("admin:ledger_book_change", args=[book.pk])))
    assert "nothing posted" in page
    assert "nothing lost" not in page
