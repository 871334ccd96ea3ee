"""A page for an admin address that does not allow the request's method. Django's own answer is empty.

    GET /admin/loadtest/trial/7/stop/ → 405, with a link to the page that has the button; nothing was done.

A user gets there by pressing a button after the session has ended: the login leads on to the button's address. The API
has its own answer: ledger/http/api_errors.py.
"""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


class WrongMethodMiddleware:
    """405 with a page, and with the header `Allow`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        answer = self.get_response(request)
        if answer.status_code != 405 or not request.path.startswith("/admin/") or answer.content:
            return answer
        by_button = "GET" not in answer["Allow"].split(", ")
        shown = {"by_button": by_button, "page": _page_of(request.path) if by_button else request.path}
        page = render(request, "405.html", shown, status=405)
        page["Allow"] = answer["Allow"]
        return page


def _page_of(path: str) -> str:
    """Return the address above; …/trial/7/ leads on to …/trial/7/change/."""
    return path.rstrip("/").rpartition("/")[0] + "/"
