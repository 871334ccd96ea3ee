"""The playable page: somebody is the scheduler, on positions that the explorer has executed (docs/data/play/*.json).

`manage.py play` explores the levels and writes the data. The site serves the page at /play; the report carries it as
one file, play.html, which asks nobody for anything.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from ledger.strategies import find
from loadtest.findings.job import Job
from loadtest.report.pages import measured
from loadtest.workloads import Turns
from loadtest.workloads.deposits import Deposits

FOLDER = measured.FOLDER / "play"
STATIC = Path(__file__).parent.parent / "static" / "front"
FILE = "play.html"
WORKERS = "ABC"


@dataclass(frozen=True)
class Level:
    """A strategy, and the bounds within which the explorer has executed every order of it."""

    strategy: str
    hint: str
    workers: int = 2
    faults: int = 1

    @property
    def name(self) -> str:
        """The level in addresses and file names."""
        return self.strategy if self.workers == Job.workers else f"{self.strategy}-{self.workers}"

    @property
    def total(self) -> int:
        """What the account holds if nothing is lost."""
        opened = sum(each.opening for each in TURNS.openings)
        return opened + sum(_paid(number) for number in range(self.workers))

    @property
    def rules(self) -> str:
        paid = [f"{WORKERS[number]} pays in {_paid(number)}" for number in range(self.workers)]
        faults = "one fault at most" if self.faults else "no faults"
        return f"{', '.join(paid[:-1])} and {paid[-1]}: {self.total} should be there in the end. {faults.capitalize()}."


def _paid(number: int) -> int:
    return sum(amount for _, amount in TURNS.legs(number))


TURNS = cast("Turns", Deposits.turns)
#: the levels, in their order
LEVELS: Mapping[str, Level] = {
    level.name: level
    for level in (
        Level("no-lock", "nothing protects the balance"),
        Level("no-lock", "three lanes: who overwrites whom?", workers=3, faults=0),
        Level("naive-lock", "the lock looks first, and then takes"),
        Level("setnx", "the lock is one command, and has no lease"),
        Level("token", "a lease, and a token that says whose it is"),
        Level("optimistic-version", "no lock: the write checks what was read"),
        Level("select-for-update", "the row is locked before it is read"),
        Level("select-for-update", "three lanes: two queue at the row", workers=3, faults=0),
        Level("fenced", "a lease again, and the store checks its number"),
    )
}


def data(name: str) -> Path:
    return FOLDER / f"{name}.json"


@cache
def text(name: str) -> str:
    """Return a level's positions as they are kept. Raises OSError if there are none."""
    return data(name).read_text(encoding="utf-8")


@cache
def schedules(name: str) -> int:
    """Return in how many schedules the explorer covers every order of a level."""
    return int(json.loads(text(name))["schedules"])


def levels(address: str = "") -> dict[str, dict[str, Any]]:
    """Return what the page shows of each level. `address`: where its data are, with {} for the name."""
    return {
        name: {
            "title": find(level.strategy).title,
            "hint": level.hint,
            "rules": level.rules,
            "total": level.total,
            "lanes": level.workers,
            "schedules": schedules(name),
            "data": address.format(name),
        }
        for name, level in LEVELS.items()
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
        "graphs": {name: SafeString(text(name).replace("<", "\\u003c")) for name in LEVELS},
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
