"""The start page: what the ledger shows there, and the last comparison, drawn."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from ledger.admin import dashboard
from loadtest.admin import live
from loadtest.background.imports import COMMAND as IMPORT
from loadtest.background.swarms import COMMAND as SWARM
from loadtest.models import Trial


def start(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add what `templates/admin/index.html` shows to unfold's context."""
    context = dashboard.dashboard(request, context)
    if not request.user.has_perm("loadtest.view_trial"):
        return context
    compared = Trial.objects.filter(command__in=(SWARM, IMPORT, "compare")).prefetch_related("results")
    last = compared.first()
    if last is None:
        return context
    drawings = live.running(last) or live.judged([each.data for each in last.results.all()])
    watched = not last.ended and "done" in last.options
    return {**context, "last": last, "drawings": drawings, "watched": watched}
