"""The museum in the admin: every case has a page, written from the committed data."""

from __future__ import annotations

import html

import pytest
from django.urls import reverse

from loadtest.report.museum import cases
from tests.ledger.test_admin import user

pytestmark = pytest.mark.usefixtures("committed_db")


def text_of(address: str) -> str:
    answer = user().get(address)
    assert answer.status_code == 200, answer
    return html.unescape(answer.content.decode())


def test_the_list_leads_to_every_case() -> None:
    page = text_of(reverse("admin:loadtest_museum"))
    assert len(cases()) == 30
    for slug in cases():
        assert f'href="{reverse("admin:loadtest_case", args=[slug])}"' in page


def test_a_case_tells_its_story_and_its_smallest_order() -> None:
    page = text_of(reverse("admin:loadtest_case", args=["01-voucher"]))
    case = cases()["01-voucher"]
    assert case["text"] in page
    assert all(move["command"] in page for form in case["broken"] for move in form["moves"])
    assert all(form["form"] in page for form in case["mended"])


def test_what_is_no_case_has_no_page() -> None:
    assert user().get(f"{reverse('admin:loadtest_museum')}99-none/").status_code == 404
