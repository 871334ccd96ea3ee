"""The pages of docs/ in the browser."""

from __future__ import annotations

import re
from pathlib import Path

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


def test_the_index_leads_to_every_page() -> None:
    answer = client().get("/docs/")
    text = answer.content.decode()
    assert not breaches(answer["Content-Security-Policy"], text)
    linked = set(re.findall(r'href="/docs/([^"]+)"', text))
    assert linked == set(documents.pages())
    assert any(page.startswith("decisions/") for page in linked)
    assert 'href="choosing.md"' in text  # from the README's section
    assert 'href="/docs/"' in client().get("/play").content.decode()


def test_without_a_readme_the_index_lists_the_pages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(documents, "README", tmp_path / "README.md")
    documents._introduction.cache_clear()
    assert documents._introduction() == ""
    documents._introduction.cache_clear()


def test_a_page_shows_its_images_and_nothing_else_of_the_folder() -> None:
    _, body = documents.rendered("scale.md")
    sources = re.findall(r'<img src="([^"]+)" alt="[^"]+"', body)
    assert sources
    for source in sources:
        answer = client().get(f"/docs/{source}")
        assert answer.status_code == 200
        assert answer["Content-Type"] in ("image/svg+xml", "image/png")
        assert "img-src 'self'" in answer["Content-Security-Policy"]
        assert b"".join(answer.streaming_content)  # type: ignore[attr-defined]
    for name in ("nothing.png", "../data/faults.json", "..%2fdata%2ffaults.json", ""):
        assert client().get(f"/docs/images/{name}").status_code == 404


def test_an_image_from_elsewhere_is_its_words() -> None:
    _, body = documents._html("![a drawing](https://example.org/x.png) and ![b](../../x.png)", ".")
    assert body.strip() == "<p>a drawing and b</p>"


def test_tables_and_code_scroll_by_keyboard_and_a_heading_has_words() -> None:
    _, body = documents._html("| | b |\n|---|---|\n| 1 | 2 |\n\n    x <table>\n\n```\ny\n```", ".")
    assert body.count('<div class="scroll" tabindex="0" role="group" aria-label="') == 3
    assert body.count("</table></div>") == 1
    assert body.count("</pre></div>") == 2
    assert [label in body for label in ('"Table 1"', '"Code 1"', '"Code 2"')] == [True] * 3
    assert "x &lt;table&gt;" in body
    assert "<th></th>" not in body
    assert "<td></td>" in body


def test_html_in_a_page_is_text() -> None:
    assert "<b>" not in documents.in_line("<b>bold</b>")
    assert "<strong>" in documents.in_line("**bold**")
