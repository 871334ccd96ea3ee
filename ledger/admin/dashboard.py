"""The start page: what runs, what was imported, and what to do next."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from ledger.models import ImportRun
from ledger.strategies import CARD, find

RECENT = 8


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add what `templates/admin/index.html` shows to unfold's context."""
    may = request.user.has_perm
    runs = (
        ImportRun.objects.select_related("book") if may("ledger.view_importrun") else ImportRun.objects.none()
    )
    return {
        **context,
        "title": "Start",
        "runs": runs[:RECENT],
        "card": [_page(slug) for slug in CARD],
        "can_import": may("ledger.add_importrun"),
    }


def _page(slug: str) -> dict[str, str]:
    """Return the sentences of a strategy. (A template would call the class itself.)"""
    fields = ("slug", "title", "guarantees", "breaks_when", "round_trips")
    return {field: getattr(find(slug), field) for field in fields}
