"""A page instead of a traceback, when the admin shows something kept on a server that this process does not know.

    a book is opened on MariaDB → MARIADB_URL goes → the book's page: 503, with what to set; nothing was applied.

The API has its own answer: ledger/http/api.py.
"""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from ledger.addresses import NoServers
from ledger.posting import NotConfigured


class NotConfiguredMiddleware:
    """503 for NotConfigured and NoServers. Without PostgreSQL no user is logged in, so the answer is one sentence."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if isinstance(error, NotConfigured):
            page = {**admin.site.each_context(request), "title": "No server", "error": error}
            return TemplateResponse(request, "ledger/not_configured.html", page, status=503)
        if isinstance(error, NoServers):
            return HttpResponse(f"{error}\n", status=503, content_type="text/plain")
        return None
