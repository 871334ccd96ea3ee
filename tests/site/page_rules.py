"""What a page of ours must not have: inline code, another host, a policy with a hole (docs/decisions/0006)."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser

LOADS = {"src", "href", "action", "formaction", "data", "poster", "srcset"}


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "style" or (tag == "script" and "src" not in given):
            self.found.append(f"<{tag}> inline")
        for name, value in given.items():
            if name == "style" or name.startswith("on"):
                self.found.append(f"<{tag} {name}=…>")
            if name in LOADS and ("//" in (value or "") or (value or "").startswith("javascript:")):
                self.found.append(f"<{tag} {name}={value}>")


def breaches(policy: str, page: str) -> list[str]:
    """Return what is wrong with a page and its Content-Security-Policy."""
    parser = _Page()
    parser.feed(page)
    return [*_holes(policy), *parser.found]


def _holes(policy: str) -> Iterator[str]:
    directives = dict(each.strip().split(" ", 1) for each in policy.split(";") if " " in each.strip())
    for name in ("default-src", "script-src", "style-src", "connect-src", "form-action"):
        if directives.get(name) != "'self'":
            yield f"{name} {directives.get(name)}"
    if "unsafe" in policy or "//" in policy or "*" in policy:
        yield policy
