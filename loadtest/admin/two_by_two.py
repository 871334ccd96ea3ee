"""Two trials, or two results, side by side: ticked in their list, with what changed, also as JSON and CSV."""

from __future__ import annotations

import csv
import json
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from loadtest.models import Result, Trial
from loadtest.trials.compared import HEAD, ComparedPair, compared, side_by_side

#: options that say how far a request is, and not what was asked for
PROGRESS = {
    "at",
    "done",
    "said",
    "book",
    "books",
    "imports",
    "deadlocks",
    "started_by",
    "strategies",
    "stores",
    "ways",
}
#: figures that have columns of their own: those of an exploration are in neither
MEASURED = {"ops_per_s", "lost_amount"}
NOTHING = "–"


class TwoByTwo:
    """What the lists of trials and of results have besides: the action that compares the two that are ticked."""

    admin_site: Any
    opts: Any
    actions: Any = ("compare_two",)
    list_before_template = "loadtest/parts/two_by_two.html"

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        name = f"loadtest_{self.opts.model_name}_compared"
        return [
            path("compared/<int:first>/<int:second>/", view(self.compared_view), name=name),
            path(
                "compared/<int:first>/<int:second>.<str:kind>", view(self.compared_file), name=f"{name}_file"
            ),
            *super().get_urls(),  # type: ignore[misc]
        ]

    @admin.action(description="Compare the two", permissions=["view"])
    def compare_two(self, request: HttpRequest, chosen: QuerySet[Any]) -> HttpResponse | None:
        both = sorted(chosen.values_list("pk", flat=True)[:3])
        if len(both) != 2:
            messages.error(request, "Tick two rows, no more and no fewer: they are compared side by side.")
            return None
        return redirect(f"admin:loadtest_{self.opts.model_name}_compared", *both)

    def compared_view(self, request: HttpRequest, first: int, second: int) -> HttpResponse:
        both = [self._one(request, pk) for pk in (first, second)]
        pairs = _pairs(*both)
        page = {
            "title": f"{both[0]} and {both[1]}",
            "both": both,
            "kind": self.opts.model_name,
            "pairs": pairs,
            "changes": sum(pair.changed for pair in pairs),
            "measured": any(name in MEASURED for pair in pairs for name, *_ in pair.figures()),
            "conditions": _conditions(*map(_trial, both)),
            "figures": [pair for pair in pairs if pair.figures()] if self.opts.model_name == "result" else [],
        }
        context = {**self.admin_site.each_context(request), **page}
        return TemplateResponse(request, "loadtest/compared.html", context)

    def compared_file(self, request: HttpRequest, first: int, second: int, kind: str) -> HttpResponse:
        both = [self._one(request, pk) for pk in (first, second)]
        pairs = _pairs(*both)
        if kind == "json":
            told = {
                "first": str(both[0]),
                "second": str(both[1]),
                "conditions": [
                    dict(zip(("name", "first", "second"), each, strict=True))
                    for each in _conditions(*map(_trial, both))
                ],
                "pairs": [pair.as_json() for pair in pairs],
            }
            answer = HttpResponse(json.dumps(told, indent=2, ensure_ascii=False), "application/json")
        elif kind == "csv":
            answer = HttpResponse(content_type="text/csv; charset=utf-8")
            csv.writer(answer).writerows([HEAD, *(pair.as_row() for pair in pairs)])
        else:
            raise Http404(f"no comparison as {kind}")
        answer["Content-Disposition"] = f'attachment; filename="compared-{first}-{second}.{kind}"'
        return answer

    def _one(self, request: HttpRequest, pk: int) -> Trial | Result:
        if not self.has_view_permission(request):  # type: ignore[attr-defined]
            raise PermissionDenied  # first: a 404 would tell what is there
        found: Trial | Result | None = self.get_object(request, str(pk))  # type: ignore[attr-defined]
        if found is None:
            raise Http404(f"no {self.opts.model_name} {pk}")
        return found


def _pairs(first: Trial | Result, second: Trial | Result) -> list[ComparedPair]:
    if isinstance(first, Result) and isinstance(second, Result):
        return side_by_side(_data(first), _data(second))
    return compared(*([_data(each) for each in trial.results.all()] for trial in (first, second)))  # type: ignore[union-attr]


def _data(result: Result) -> dict[str, Any]:
    return {**result.data, "strategy": result.strategy, "verdict": result.verdict}


def _trial(each: Trial | Result) -> Trial:
    return each.trial if isinstance(each, Result) else each


def _conditions(first: Trial, second: Trial) -> list[tuple[str, str, str]]:
    """Return (name, first, second) of each condition in which two trials differ."""
    one, other = _asked(first), _asked(second)
    return [
        (name, one.get(name, NOTHING), other.get(name, NOTHING))
        for name in sorted({**one, **other})
        if one.get(name) != other.get(name)
    ]


def _asked(trial: Trial) -> dict[str, str]:
    """Return what was asked for, and on which machine, by name."""
    found: dict[str, Any] = {"command": trial.command, "workload": trial.workload, "store": trial.store}
    found["adversary"] = trial.adversary
    for name, value in {**trial.options, **trial.environment}.items():
        found |= value if name in ("plan", "asked") and isinstance(value, dict) else {name: value}
    settings = found.pop("settings", None) or {}
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in {**found, **settings}.items()
        if name not in PROGRESS
    }
