"""The trials and their results in the admin: to read, not to change."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html

from ledger.admin.readonly import ReadOnlyAdmin
from loadtest.admin_comparison import Comparisons
from loadtest.admin_stop import Stops
from loadtest.admin_strategy_pages import StrategyPages
from loadtest.admin_swarm import Swarms
from loadtest.models import Result, Trial


@admin.register(Trial)
class TrialAdmin(Stops, Swarms, Comparisons, StrategyPages, ReadOnlyAdmin):
    list_display = ("__str__", "workload", "store", "adversary", "started", "ended", "verdicts")
    list_filter = ("command", "workload", "store", "adversary")

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).prefetch_related("results")

    @admin.display
    def verdicts(self, trial: Trial) -> str:
        return ", ".join(str(result) for result in trial.results.all()) or "–"


@admin.register(Result)
class ResultAdmin(ReadOnlyAdmin):
    list_display = ("strategy", "verdict", "trial", "created")
    list_filter = ("verdict", "strategy")
    list_select_related = ("trial",)
    exclude = ("data",)
    readonly_fields = ("evidence",)

    @admin.display
    def evidence(self, result: Result) -> str:
        return format_html("<pre>{}</pre>", json.dumps(result.data, indent=2, ensure_ascii=False))
