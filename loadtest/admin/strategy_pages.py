"""The pages of strategies in the admin: every verdict, book and import leads here."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from ledger.strategies import CARD, known
from loadtest.models import Result
from loadtest.report.strategy_page import claim, sentences, textbook

RESULTS = 10


class StrategyPages:
    """What `TrialAdmin` adds besides: all strategies, and the page of one. For whoever may enter the admin."""

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
        """List all strategies, the card's first."""
        found = known()
        groups = {
            "Six to begin with": CARD,
            "Further strategies": [slug for slug in found if slug not in CARD],
        }
        rows = {title: [sentences(found[slug]) for slug in slugs] for title, slugs in groups.items()}
        return self._page(request, "strategies", "Strategies", groups=rows)

    def strategy_view(self, request: HttpRequest, slug: str) -> HttpResponse:
        """Show one: what it says of itself, its claim, what came of it here, how to put it on trial."""
        found = known().get(slug)
        if found is None:
            raise Http404(f"no strategy {slug}")
        results = Result.objects.filter(strategy=slug).select_related("trial").order_by("-created")
        may = request.user.has_perm("loadtest.view_result")
        return self._page(
            request,
            "strategy",
            found.title,
            strategy=sentences(found),
            textbook=textbook(found),
            claim=claim(found),
            results=results[:RESULTS] if may else (),
        )

    def _page(self, request: HttpRequest, name: str, title: str, **shown: Any) -> HttpResponse:
        context = {**self.admin_site.each_context(request), "title": title, **shown}
        return TemplateResponse(request, f"loadtest/{name}.html", context)
