"""The museum of real bugs in the admin: its cases to be browsed. Read from committed data, nothing is run."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from loadtest.report.museum import cases


class MuseumPages:
    """What `TrialAdmin` adds besides: all cases, and the page of one. For everybody who may enter the admin."""

    admin_site: Any

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("museum/", view(self.museum_view), name="loadtest_museum"),
            path("museum/<slug:slug>/", view(self.case_view), name="loadtest_case"),
            *super().get_urls(),  # type: ignore[misc]
        ]

    def museum_view(self, request: HttpRequest) -> HttpResponse:
        context = {"title": "The museum of real bugs", "cases": list(cases().values())}
        return self._museum_page(request, "museum", context)

    def case_view(self, request: HttpRequest, slug: str) -> HttpResponse:
        if slug not in cases():
            raise Http404(f"no case {slug}")
        return self._museum_page(request, "museum_case", {"title": slug, "case": cases()[slug]})

    def _museum_page(self, request: HttpRequest, name: str, shown: dict[str, Any]) -> HttpResponse:
        context = {**self.admin_site.each_context(request), **shown}
        return TemplateResponse(request, f"loadtest/{name}.html", context)
