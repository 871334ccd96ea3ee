"""All cases, on as many cores as there are, each lane with servers of its own."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from museum import by_chance, data, lane, registry, trial
from museum.registry import Exhibit

LANES = os.cpu_count() or 1


def run(slugs: Sequence[str], tries: int, done: Callable[[str], None]) -> list[dict[str, Any]]:
    """→ what each case came to, in order. `done`: hears of each case. Raises NotAsTold."""
    spawn = multiprocessing.get_context("spawn")
    found: dict[str, dict[str, Any]] = {}
    with ProcessPoolExecutor(min(LANES, len(slugs)), spawn, lane.begin) as lanes:
        running = {lanes.submit(one, slug, tries): slug for slug in sorted(slugs, key=_last, reverse=True)}
        for each in as_completed(running):
            found[running[each]] = each.result()
            done(running[each])
    return [found[slug] for slug in slugs]


def _last(slug: str) -> float:
    """How long it took the last time: the longest begin first."""
    took = {each["case"]: each["seconds"] for each in data.read()["results"]} if data.FILE.exists() else {}
    return float(took.get(slug, 60))


def one(slug: str, tries: int) -> dict[str, Any]:
    """A case, in a process that has begun as a lane. `tries`: rounds of threads behind a barrier, 0: none."""
    begun, exhibit = time.perf_counter(), registry.load()[slug]
    case = exhibit.case
    broken = [trial.broken(exhibit, form) for form in case.broken]
    mended = [trial.mended(exhibit, form) for form in case.mended]
    if tries:
        _race(exhibit, tries, broken, mended)
    return {
        "case": slug,
        "file": f"{exhibit.module.__name__.replace('.', '/')}.py",
        "text": exhibit.text,
        "source": case.source,
        "cure": case.cure,
        "broken": broken,
        "mended": mended,
        "seconds": round(time.perf_counter() - begun, 1),
    }


def _race(
    exhibit: Exhibit, tries: int, broken: Sequence[dict[str, Any]], mended: Sequence[dict[str, Any]]
) -> None:
    """Adds `by_chance` to each form, and to the mended ones `speed`: their rounds/s ÷ those of what they mend."""
    forms = [*exhibit.case.broken, *exhibit.case.mended]
    tallies = by_chance.tried(exhibit, [form for form in forms if not form.untimed], tries)
    for each, form in zip((*broken, *mended), forms, strict=True):
        tally = tallies.get(form.name)
        each["by_chance"] = (
            {"found": tally.found, "tries": tally.tries} if tally else {"untimed": form.untimed}
        )
        if form in exhibit.case.mended:
            before = tallies.get(form.mends or broken[0]["form"])
            each["speed"] = by_chance.ratio(tally, before) if tally and before else None
