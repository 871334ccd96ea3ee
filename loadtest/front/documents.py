"""The pages of docs/ in the browser: the tour, the museum, the guide. Markdown without HTML of its own."""

from __future__ import annotations

import posixpath
import re
from functools import cache, lru_cache
from pathlib import PurePosixPath

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from ledger.addresses import BASE_DIR

FOLDER = BASE_DIR / "docs"
#: what the front page leads to, if the checkout has it: page → what it is called there
LEADS = {
    "tour/README.md": "The tour",
    "museum/README.md": "The museum",
    "museum.md": "The museum",
    "choosing.md": "Choosing a strategy",
    "counterexamples.md": "Counterexamples",
    "faults.md": "Faults",
    "your-own-code.md": "Your own code",
    "api.md": "The API",
    "glossary.md": "Glossary",
}


@cache
def pages() -> frozenset[str]:
    """Return the names of all pages. Only these are served, so no address leads out of the folder."""
    return frozenset(each.relative_to(FOLDER).as_posix() for each in FOLDER.rglob("*.md"))


def offered() -> list[tuple[str, str]]:
    """Return (page, name) of what the front page leads to."""
    return [(page, name) for page, name in LEADS.items() if page in pages()]


@require_safe
def document(request: HttpRequest, name: str) -> HttpResponse:
    """Show one page."""
    if name not in pages():
        raise Http404(f"no page {name}")
    title, body = rendered(name)
    shown = {"title": title, "body": mark_safe(body), "name": name}  # noqa: S308  (HTML in it is escaped)
    return render(request, "front/document.html", shown)


@lru_cache(maxsize=200)
def rendered(name: str) -> tuple[str, str]:
    """Return a page's title and its HTML."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse((FOLDER / name).read_text(encoding="utf-8"))
    title, seen = name, set[str]()
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            text = _plain(tokens[place + 1])
            title = text if token.tag == "h1" else title
            token.attrSet("id", _anchor(text, seen))
        token.attrs.pop("style", None)  # of a table's column: the policy allows none
        _link(token.children or [], name)
    return title, str(markdown.renderer.render(tokens, markdown.options, {}))


def in_line(text: str) -> SafeString:
    """Return one sentence with its marks as HTML."""
    return SafeString(MarkdownIt("commonmark", {"html": False}).renderInline(text))  # HTML in it is escaped


def _link(tokens: list[Token], name: str) -> None:
    """Links to other pages stay as they are. A file of the checkout, and another host, is no page here: its text."""
    dead = False
    for token in tokens:
        if token.type == "link_open":
            dead = not _leads_somewhere(str(token.attrs.get("href", "")), name)
        if dead and token.type in ("link_open", "link_close"):
            kind, token.tag, token.attrs = token.type, "span", {}
            dead = kind == "link_open"
        if token.type == "image":
            token.type, token.tag, token.children = "text", "", []


def _leads_somewhere(address: str, name: str) -> bool:
    page, _, _ = address.partition("#")
    if not page:
        return True
    there = posixpath.normpath(str(PurePosixPath(name).parent / page))
    return "://" not in address and there in pages()


def _plain(token: Token) -> str:
    return "".join(each.content for each in token.children or [])


def _anchor(text: str, seen: set[str]) -> str:
    """As GitHub makes them, so that the pages' own links work."""
    name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
    number, found = 0, name
    while found in seen:
        number += 1
        found = f"{name}-{number}"
    seen.add(found)
    return found
