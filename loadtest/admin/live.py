"""What a comparison's page draws: the running book as it goes, and what the judged strategies did and lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from ledger.chart import BAD, GOOD, HALF, Bar, ChartLine, bars, over_time
from ledger.imports.progress import progress
from ledger.imports.ways import Way
from ledger.models import Book, ImportRun
from ledger.reconcile_stored import course_of
from loadtest.models import Trial
from loadtest.report.labels import labels

#: the most postings of a running import whose course is drawn with each look
DRAWN = 50_000
LEGEND = ("loses nothing", "loses money")

#: a title, and what is below it
Drawing = tuple[str, str]


def running(trial: Trial) -> list[Drawing]:
    """Return the course of the book that is posted to now; nothing as long as nothing is written."""
    options = trial.options
    if trial.ended or options.get("at") is None:
        return []
    subject = options["strategies"][options["at"]]
    book = _book(options, subject)
    went = course_of(book) if book else []
    if not went:
        return []
    rate = [(each.after, each.postings) for each in went[1:]]
    missing = [(each.after, each.missing) for each in went]
    now, gone = f"{rate[-1][1]:,.0f}", f"{went[-1].missing:,}"
    return [
        (
            f"{subject}: postings/s",
            over_time([ChartLine("", GOOD, rate)], f"Postings per second, at the end {now}", HALF),
        ),
        (
            f"{subject}: missing from the balances, minor units",
            over_time(
                [ChartLine("", BAD, missing)],
                f"Minor units missing from the balances, at the end {gone}",
                HALF,
            ),
        ),
    ]


def _book(options: dict[str, Any], subject: str) -> Book | None:
    if "imports" in options:
        run = ImportRun.objects.select_related("book").filter(pk=options["imports"].get(subject)).first()
        return run.book if run and progress(run).posted <= DRAWN else None
    return Book.objects.filter(pk=UUID(options["book"])).first() if "book" in options else None


def judged(results: Sequence[dict[str, Any]]) -> list[Drawing]:
    """Return the throughput and the lost money of the judged results, if there are several. The set-based import is
    many times as fast: beside it, all others would look alike. The title gives its figure."""
    rows = [each for each in results if each.get("ops_per_s") is not None]
    in_bulk = [each for each in rows if each.get("way") == Way.SET_BASED]
    rows = [each for each in rows if each not in in_bulk]
    if len(rows) < 2:
        return []
    beside = "".join(f" (not drawn: set-based import, {each['ops_per_s']:,.0f})" for each in in_bulk)
    lose = [bool(each["lost_amount"]) for each in rows]
    rates = _bars("Postings per second", labels(rows), [r["ops_per_s"] for r in rows], lose)
    drawn = [(f"Postings/s{beside}", rates)]
    if any(lose):
        lost = [each["lost_amount"] for each in rows]
        drawn.append(("Lost, minor units", _bars("Minor units lost", labels(rows), lost, lose)))
    return drawn


def _bars(what: str, names: Sequence[str], values: Sequence[float], lose: Sequence[bool]) -> str:
    told = "; ".join(f"{name} {value:,.0f}" for name, value in zip(names, values, strict=True))
    return bars([Bar(*row) for row in zip(names, values, lose, strict=True)], f"{what}: {told}", LEGEND)
