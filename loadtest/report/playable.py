"""The playable page: somebody is the scheduler, on positions that the explorer has executed (docs/data/play/*.json).

`manage.py play` explores the levels and writes the data. The site serves the page at /play; the report carries it as
one file, play.html, which asks nobody for anything.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from ledger.strategies import find
from loadtest.report.pages import measured

FOLDER = measured.FOLDER / "play"
STATIC = Path(__file__).parent.parent / "static" / "front"
FILE = "play.html"
#: the levels, in their order → what they are about
LEVELS: Mapping[str, str] = {
    "no-lock": "nothing protects the balance",
    "naive-lock": "the lock looks first, and then takes",
    "setnx": "the lock is one command, and has no lease",
    "token": "a lease, and a token that says whose it is",
    "optimistic-version": "no lock: the write checks what was read",
    "select-for-update": "the row is locked before it is read",
    "fenced": "a lease again, and the store checks its number",
}


def data(slug: str) -> Path:
    return FOLDER / f"{slug}.json"


@cache
def text(slug: str) -> str:
    """Return a level's positions as they are kept. Raises OSError if there are none."""
    return data(slug).read_text(encoding="utf-8")


@cache
def schedules(slug: str) -> int:
    """Return in how many schedules the explorer covers every order of a level."""
    return int(json.loads(text(slug))["schedules"])


def levels(address: str = "") -> dict[str, dict[str, Any]]:
    """Return what the page shows of each level. `address`: where its data are, with {} for the slug."""
    return {
        slug: {
            "title": find(slug).title,
            "hint": hint,
            "schedules": schedules(slug),
            "data": address.format(slug),
        }
        for slug, hint in LEVELS.items()
    }


def context(address: str = "") -> dict[str, Any]:
    """Return what the part of the page shows that the site and the report share."""
    found = levels(address)
    return {"levels": found, "levels_json": json.dumps(found)}


def page() -> str:
    """Return the page as one file. Its policy names its own script by hash, and lets it ask nobody."""
    script = (STATIC / "play.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    style = "".join((STATIC / name).read_text(encoding="utf-8") for name in ("front.css", "play.css"))
    shown = {
        **context(),
        "graphs": {slug: SafeString(text(slug).replace("<", "\\u003c")) for slug in LEVELS},
        "script": SafeString(script),
        "style": SafeString(style),
        "policy": f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:",
    }
    return render_to_string("front/play_alone.html", shown)


def write(folder: Path) -> Path:
    """Write `folder`/play.html and return its path."""
    path = folder / FILE
    path.write_text(page(), encoding="utf-8")
    return path
