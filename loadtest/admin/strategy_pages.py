"""The pages of strategies in the admin: every verdict, book and import leads here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from ledger.strategies import CARD, known
from loadtest.admin.commands import COMMAND_TITLES
from loadtest.background.commands import EXPLORE, FAULTS, TRUST
from loadtest.findings.gloss import plain
from loadtest.front import evidence
from loadtest.front.filters import Filters
from loadtest.models import Result
from loadtest.report.strategy_page import claim, sentences, textbook

RESULTS = 10
#: order → its name, and what it goes by
SORTS: dict[str, tuple[str, Callable[[evidence.StrategyRow], Any]]] = {
    "": ("the six to begin with first", lambda row: row.slug not in CARD),
    "name": ("by name", lambda row: row.slug),
    "kind": ("by kind", lambda row: (row.kind, row.slug)),
    "kept": ("kept under most hazards first", lambda row: -row.found.get("kept", 0)),
    "lost": ("lost under most hazards first", lambda row: -row.found.get("lost", 0)),
}


#: page of the admin → what its form starts
STARTS = {
    "admin:loadtest_trial_swarm": "Run a load test",
    "admin:loadtest_trial_explore": COMMAND_TITLES[EXPLORE][0],
    "admin:loadtest_trial_faults": COMMAND_TITLES[FAULTS][0],
    "admin:loadtest_trial_trust": COMMAND_TITLES[TRUST][0],
}


def _with_reason(result: Result) -> Result:
    """With `why`, in the words of a schedule if that is where it comes from."""
    why = result.data.get("cause") or result.data.get("reason") or ""
    result.why = plain(why) if result.trial.command == EXPLORE else why  # type: ignore[attr-defined]
    return result


class StrategyPages:
    """What `TrialAdmin` adds besides: all strategies, and the page of one. For everybody who may enter the admin."""

    admin_site: Any

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("strategies/", view(self.strategies_view), name="loadtest_strategies"),
            # no module:callable, which has no page here and is never imported because an address says so
            path("strategies/<slug:slug>/", view(self.strategy_view), name="loadtest_strategy"),
            *super().get_urls(),  # type: ignore[misc]
        ]

    def strategies_view(self, request: HttpRequest) -> HttpResponse:
        """List the strategies that the filters leave, the card's first, with what was found out about each."""
        filters, sort = Filters.of(request.GET), request.GET.get("sort", "")
        rows = filters.chosen(evidence.rows().values())
        rows.sort(key=SORTS[sort][1] if sort in SORTS else SORTS[""][1])
        others = [found for slug, found in known().items() if slug not in evidence.rows()]
        return self._page(
            request,
            "strategies",
            "Strategies",
            rows=rows,
            total=len(evidence.rows()),
            filters=filters,
            sort=sort,
            sorts={name: label for name, (label, _) in SORTS.items()},
            installed=() if filters.some else [sentences(found) for found in others],
        )

    def strategy_view(self, request: HttpRequest, slug: str) -> HttpResponse:
        """Show one: what it says of itself, its claim, what came of it here, how to put it on trial."""
        found = known().get(slug)
        if found is None:
            raise Http404(f"no strategy {slug}")
        shown = Result.objects.filter(strategy=slug).select_related("trial").order_by("-created")
        may = request.user.has_perm("loadtest.view_result")
        return self._page(
            request,
            "strategy",
            found.title,
            strategy=sentences(found),
            textbook=textbook(found),
            claim=claim(found),
            results=[_with_reason(each) for each in shown[:RESULTS]] if may else (),
            row=evidence.rows().get(slug),
            starts=STARTS,
        )

    def _page(self, request: HttpRequest, name: str, title: str, **shown: Any) -> HttpResponse:
        context = {**self.admin_site.each_context(request), "title": title, **shown}
        return TemplateResponse(request, f"loadtest/{name}.html", context)
