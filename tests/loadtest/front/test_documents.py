"""The pages of docs/ in the browser."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from loadtest.front import documents
from tests.site.page_rules import breaches

pytestmark = pytest.mark.usefixtures("committed_db")


def client() -> Client:
    return Client(headers={"host": "localhost"})


@pytest.mark.deep
def test_every_page_is_shown_and_keeps_the_policy() -> None:
    for name in documents.pages():
        answer = client().get(f"/docs/{name}")
        text = answer.content.decode()
        assert answer.status_code == 200, name
        assert not breaches(answer["Content-Security-Policy"], text), name


def test_a_link_of_a_page_leads_to_a_page() -> None:
    _, body = documents.rendered("tour/README.md")
    links = re.findall(r'href="([^"#]+)', body)
    assert "01-the-lost-update.md" in links
    assert all(client().get(f"/docs/tour/{link}").status_code == 200 for link in links)


@pytest.mark.parametrize("name", ["../README.md", "nothing.md", "data/faults.json", "%2e%2e/manage.py"])
def test_nothing_else_is_served(name: str) -> None:
    assert client().get(f"/docs/{name}").status_code == 404


def test_html_in_a_page_is_text() -> None:
    assert "<b>" not in documents.in_line("<b>bold</b>")
    assert "<strong>" in documents.in_line("**bold**")
