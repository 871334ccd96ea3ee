"""The trials and their results in the admin: to read, not to change."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join

from ledger.admin.readonly import ReadOnlyAdmin
from ledger.strategies import known
from loadtest.admin.commands import Commands
from loadtest.admin.comparison import Comparisons
from loadtest.admin.museum_pages import MuseumPages
from loadtest.admin.stop import Stops
from loadtest.admin.strategy_pages import StrategyPages
from loadtest.admin.swarm import Swarms
from loadtest.admin.two_by_two import TwoByTwo
from loadtest.background.commands import EXPLORE
from loadtest.findings.gloss import plain
from loadtest.models import Result, Trial


@admin.register(Trial)
class TrialAdmin(TwoByTwo, Stops, Commands, Swarms, Comparisons, StrategyPages, MuseumPages, ReadOnlyAdmin):
    first_step = ("Run a load test", "loadtest_trial_swarm")
    list_display = ("__str__", "workload", "store", "adversary", "started", "ended", "verdicts")
    list_filter = ("command", "workload", "store", "adversary")

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).prefetch_related("results")

    @admin.display
    def verdicts(self, trial: Trial) -> str:
        told = [(each.strategy, each.verdict, each.verdict) for each in trial.results.all()]
        if not told:
            return "–"
        words = format_html_join(" ", '<span class="whole">{} <span class="word {}">{}</span></span>', told)
        return format_html('<span class="cell">{}</span>', words)


@admin.register(Result)
class ResultAdmin(TwoByTwo, ReadOnlyAdmin):
    first_step = ("Compare strategies", "loadtest_trial_compare")
    list_display = ("strategy", "word", "trial", "created")
    list_filter = ("verdict", "strategy")
    list_select_related = ("trial",)
    fields = ("trial", "strategy_page", "word", "why", "book", "losses", "evidence")
    readonly_fields = ("strategy_page", "word", "why", "losses", "evidence")

    @admin.display(description="strategy")
    def strategy_page(self, result: Result) -> str:
        if result.strategy not in known():
            return result.strategy  # a third-party lock has no page
        page = reverse("admin:loadtest_strategy", args=[result.strategy])
        return format_html('<a href="{}">{}</a>', page, result.strategy)

    @admin.display(description="verdict", ordering="verdict")
    def word(self, result: Result) -> str:
        return format_html('<span class="cell"><span class="word {0}">{0}</span></span>', result.verdict)

    @admin.display
    def why(self, result: Result) -> str:
        told = result.data.get("cause") or result.data.get("reason") or "–"
        return plain(told) if result.trial.command == EXPLORE else told

    @admin.display(description="who overwrote whom")
    def losses(self, result: Result) -> str:
        number = result.data.get("worst_account")
        if not (result.book_id and number):
            return "–"
        page = reverse("admin:ledger_book_losses", args=[result.book_id, number])
        return format_html('<a href="{}">account {}</a>', page, number)

    @admin.display
    def evidence(self, result: Result) -> str:
        return format_html(
            '<pre class="textbook">{}</pre>', json.dumps(result.data, indent=2, ensure_ascii=False)
        )
