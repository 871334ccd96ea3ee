"""The pages of docs/ in the browser, their images, and an index. Markdown without HTML of its own."""

from __future__ import annotations

import posixpath
import re
from functools import cache, lru_cache
from mimetypes import guess_type
from pathlib import PurePosixPath

from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from ledger.addresses import BASE_DIR

FOLDER = BASE_DIR / "docs"
#: its section "Documentation" is the top of the index. An image of the lab may lack it
README = BASE_DIR / "README.md"
IMAGES = (".png", ".svg")
#: what the front page leads to, if the checkout has it: page → what it is called there
LEADS = {
    "tour/README.md": "The tour",
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


@cache
def images() -> frozenset[str]:
    """Return the names of all images of the pages. Only these are served."""
    found = (FOLDER / "images").glob("*")
    return frozenset(each.relative_to(FOLDER).as_posix() for each in found if each.suffix in IMAGES)


def offered() -> list[tuple[str, str]]:
    """Return (page, name) of what the front page leads to."""
    return [(page, name) for page, name in LEADS.items() if page in pages()]


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Show the README's section on the documentation, and below it the list of all pages."""
    shown = {"title": "Documentation", "body": _marked_safe(_introduction()), "groups": _groups()}
    return render(request, "front/documents.html", shown)


@require_safe
def document(request: HttpRequest, name: str) -> HttpResponse:
    """Show one page."""
    if name not in pages():
        raise Http404(f"no page {name}")
    title, body = rendered(name)
    return render(request, "front/document.html", {"title": title, "body": _marked_safe(body)})


@require_safe
@cache_control(public=True, max_age=3600)
def image(request: HttpRequest, name: str) -> FileResponse:
    """Send one image of a page."""
    if f"images/{name}" not in images():
        raise Http404(f"no image {name}")
    file = FOLDER / "images" / name
    return FileResponse(file.open("rb"), content_type=guess_type(file.name)[0])


@lru_cache(maxsize=200)
def rendered(name: str) -> tuple[str, str]:
    """Return a page's title and its HTML."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    title, body = _html(text, str(PurePosixPath(name).parent))
    return title or name, body


@cache
def _introduction() -> str:
    """Return the README's section as HTML. "": there is none."""
    text = README.read_text(encoding="utf-8") if README.is_file() else ""
    found = re.search(r"^## Documentation\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return _html(found[1].replace("](docs/", "]("), ".")[1] if found else ""


@cache
def _groups() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return (name of the folder, [(page, title), …]) for each folder. The pages of docs/ itself come
    first, and a README before the pages beside it."""
    in_order = sorted(pages(), key=lambda each: (not each.endswith("README.md"), each))
    titles = {page: rendered(page)[0] for page in in_order}
    folders = sorted(
        {str(PurePosixPath(page).parent) for page in titles}, key=lambda each: (each != ".", each)
    )
    return [
        (
            "guide" if folder == "." else folder,
            [(page, title) for page, title in titles.items() if str(PurePosixPath(page).parent) == folder],
        )
        for folder in folders
    ]


def _html(text: str, folder: str) -> tuple[str, str]:
    """Return the first heading of a text in Markdown, and the text as HTML. `folder`: where its links begin."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text)
    title, seen = "", set[str]()
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            heading = _plain(tokens[place + 1])
            title = title or (heading if token.tag == "h1" else "")
            token.attrSet("id", _anchor(heading, seen))
        if token.type in ("th_open", "th_close"):
            text_of = tokens[place + (1 if token.nesting == 1 else -1)]
            token.tag = token.tag if text_of.content.strip() else "td"  # an empty heading says nothing
        token.attrs.pop("style", None)  # of a table's column: the policy allows none
        _link(token.children or [], folder)
    return title, _scrollable(str(markdown.renderer.render(tokens, markdown.options, {})))


def _scrollable(body: str) -> str:
    """Put each table and each block of code into a box that scrolls by keyboard. The page's own text has no tags."""
    counts = {"table": 0, "pre": 0}

    def boxed(found: re.Match[str]) -> str:
        tag = found[1]
        counts[tag] += 1
        label = f"{'Table' if tag == 'table' else 'Code'} {counts[tag]}"
        named = f'<table aria-label="{label}">' if tag == "table" else "<pre>"
        return f'<div class="scroll" tabindex="0" role="group" aria-label="{label}">{named}'

    return re.sub("</(table|pre)>", r"</\1></div>", re.sub("<(table|pre)>", boxed, body))


def _marked_safe(body: str) -> SafeString:
    return mark_safe(body)  # noqa: S308  (HTML in a page is escaped)


def in_line(text: str) -> SafeString:
    """Return one sentence with its marks as HTML."""
    return SafeString(MarkdownIt("commonmark", {"html": False}).renderInline(text))  # HTML in it is escaped


def _link(tokens: list[Token], folder: str) -> None:
    """Links to other pages stay as they are. A file of the checkout, and another host, is no page here: its text.
    Images are those of docs/images. Of another one the words stay."""
    dead = False
    for token in tokens:
        if token.type == "link_open":
            dead = not _leads_somewhere(str(token.attrs.get("href", "")), folder)
        if dead and token.type in ("link_open", "link_close"):
            kind, token.tag, token.attrs = token.type, "span", {}
            dead = kind == "link_open"
        if token.type == "image" and _there(str(token.attrs["src"]), folder) not in images():
            token.type, token.tag, token.children = "text", "", []


def _leads_somewhere(address: str, folder: str) -> bool:
    page, _, _ = address.partition("#")
    return not page or ("://" not in address and _there(page, folder) in pages())


def _there(address: str, folder: str) -> str:
    return posixpath.normpath(str(PurePosixPath(folder) / address))


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
