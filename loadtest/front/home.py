"""The front page, the experiment that it starts, and the evidence on one strategy."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_POST, require_safe

from ledger.strategies import CARD, STRATEGIES
from loadtest import models
from loadtest.front import advice, documents, evidence, experiment
from loadtest.front.filters import Filters
from loadtest.report.playable import LEVELS
from loadtest.report.strategy_page import textbook
from loadtest.verdict.words import LETTERS, SAYS, Word
from locks.hazards import Hazard

#: picked at first: it keeps, and everybody can write it
USUAL = "select-for-update"


@require_safe
@ensure_csrf_cookie
def home(request: HttpRequest) -> HttpResponse:
    """One page: the experiment, the matrix, the questions."""
    filters = Filters.of(request.GET)
    row = _row(request.GET.get("run"))
    return render(
        request,
        "front/home.html",
        {
            **_picked(row, request.GET.get("problem", "")),
            "filters": filters,
            "matrix": _matrix(filters),
            "questions": [(each, request.GET.get(each.name)) for each in advice.QUESTIONS],
            "advice": advice.advised(request.GET.dict()),
            "documents": documents.offered(),
        },
    )


@lru_cache(maxsize=200)
def _matrix(filters: Filters) -> SafeString:
    """Return the matrix as HTML. Some 1,500 fields take half a second, and anybody may ask: each choice of the filters
    is drawn once a process."""
    shown = {
        "rows": filters.chosen(evidence.rows().values()),
        "total": len(evidence.rows()),
        "hazards": evidence.hazards(),
        "letters": [(letter.upper(), word, *_said(word)) for word, letter in LETTERS.items()],
        "provenance": evidence.provenance(),
    }
    return render_to_string("front/matrix.html", shown)


def _said(word: str) -> tuple[str, str]:
    """Return a word's name and meaning in the matrix. Its data have no cell that lacked a server."""
    if word == Word.NOT_RUN:
        return "not applicable", "the hazard cannot touch the strategy"
    return word, SAYS[word][1]


@require_POST
def start(request: HttpRequest) -> HttpResponse:
    """Start the experiment; on to where it is shown. 400 and 429 say why there is none."""
    try:
        row = experiment.begin(request.POST.get("strategy", ""))
    except (ValueError, experiment.NotNow) as error:
        status = 400 if isinstance(error, ValueError) else 429
        page = {**_picked(None, str(error)), "alone": not _in_place(request)}
        return render(request, "front/experiment_page.html", page, status=status)
    if _in_place(request):
        return render(request, "front/experiment.html", _picked(row, ""))
    return redirect(f"{reverse('front')}?run={row.pk}#experiment")


@require_safe
def shown(request: HttpRequest, pk: int) -> HttpResponse:
    """The experiment as it stands now: the part of the page that the script exchanges."""
    row = get_object_or_404(models.Trial, pk=pk, command=experiment.COMMAND)
    return render(request, "front/experiment.html", _picked(row, ""))


@require_safe
def strategy(request: HttpRequest, slug: str) -> HttpResponse:
    """The evidence on one strategy: each hazard, the claim, what was done, the smallest schedule."""
    row = evidence.rows().get(slug)
    if row is None:
        raise Http404(f"no strategy {slug}")
    without = row.fields[Hazard.CONTENTION].schedule
    fields = [_evidence_on(row.fields[hazard], about, without) for hazard, about in evidence.hazards()]
    page = {"row": row, "fields": fields, "textbook": textbook(STRATEGIES[slug])}
    page["level"] = slug if slug in LEVELS else ""
    return render(request, "front/strategy.html", page)


def _evidence_on(field: evidence.Field, about: str, without: Any) -> dict[str, Any]:
    """`without`: the smallest schedule that breaks the strategy without any fault. Under a fault it breaks it too."""
    told = field.schedule["told"] if field.schedule else ()
    breaks = field.word is not None and field.word.is_breach and not field.schedule
    return {
        "field": field,
        "about": about,
        "told": [documents.in_line(each) for each in told],
        "without": without if breaks else None,
    }


def _row(asked: str | None) -> models.Trial | None:
    known = models.Trial.objects.filter(command=experiment.COMMAND)
    return known.filter(pk=int(asked)).first() if asked and asked.isascii() and asked.isdigit() else None


def _picked(row: models.Trial | None, problem: str) -> dict[str, Any]:
    """What the part of the page about the experiment shows. Without a run: ten empty cells on each side."""
    offered = experiment.offered()
    run = experiment.seen(row) if row else None
    slug = run["sides"][1]["slug"] if run else USUAL
    return {
        "run": run,
        "empty": range(1, experiment.WORKERS + 1),
        "workers": experiment.WORKERS,
        "problem": problem,
        "picked": slug,
        "first": [(each, STRATEGIES[each].title) for each in offered if each in CARD or each == USUAL],
        "further": [(each, STRATEGIES[each].title) for each in offered if each not in (*CARD, USUAL)],
    }


def _in_place(request: HttpRequest) -> bool:
    """Does the page's own script ask, which exchanges only this part?"""
    return request.headers.get("X-Requested-With") == "fetch"
