"""The trials and their results in the admin: to read, not to change."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from unfold.admin import ModelAdmin, TabularInline

from loadtest.models import Result, Trial


class ReadOnly:
    """Evidence is not edited."""

    def has_add_permission(self, request: HttpRequest, *_: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, *_: Any) -> bool:
        return False


class ResultInline(ReadOnly, TabularInline):
    model = Result
    fields = ("strategy", "verdict", "expected", "final", "lost_amount", "ops_per_s", "book")
    readonly_fields = fields
    show_change_link = True
    extra = 0
    can_delete = False

    @admin.display
    def expected(self, result: Result) -> Any:
        return result.data.get("expected", "–")

    @admin.display
    def final(self, result: Result) -> Any:
        return result.data.get("final", "–")

    @admin.display(description="lost")
    def lost_amount(self, result: Result) -> Any:
        return result.data.get("lost_amount", "–")

    @admin.display(description="postings/s")
    def ops_per_s(self, result: Result) -> Any:
        return result.data.get("ops_per_s", "–")


@admin.register(Trial)
class TrialAdmin(ReadOnly, ModelAdmin):
    list_display = ("__str__", "workload", "store", "adversary", "started", "ended", "verdicts")
    list_filter = ("command", "workload", "store", "adversary")
    inlines = (ResultInline,)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).prefetch_related("results")

    @admin.display
    def verdicts(self, trial: Trial) -> str:
        return ", ".join(str(result) for result in trial.results.all()) or "–"


@admin.register(Result)
class ResultAdmin(ReadOnly, ModelAdmin):
    list_display = ("strategy", "verdict", "trial", "created")
    list_filter = ("verdict", "strategy")
    list_select_related = ("trial",)
    exclude = ("data",)
    readonly_fields = ("evidence",)

    @admin.display
    def evidence(self, result: Result) -> str:
        return format_html("<pre>{}</pre>", json.dumps(result.data, indent=2, ensure_ascii=False))
