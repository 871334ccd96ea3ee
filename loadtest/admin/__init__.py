"""The trials and their results in the admin: to read, not to change."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join

from ledger.admin.readonly import ReadOnlyAdmin, took
from ledger.strategies import known
from loadtest.admin.commands import Commands, schedule
from loadtest.admin.comparison import Comparisons
from loadtest.admin.museum_pages import MuseumPages
from loadtest.admin.stop import Stops
from loadtest.admin.strategy_pages import StrategyPages
from loadtest.admin.swarm import Swarms
from loadtest.admin.two_by_two import TwoByTwo
from loadtest.background.commands import EXPLORE
from loadtest.findings.gloss import plain
from loadtest.models import Result, Trial


class HazardFilter(admin.AllValuesFieldListFilter):
    """The field's name in the database is older than the word that the pages use."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = "hazard"


@admin.register(Trial)
class TrialAdmin(TwoByTwo, Stops, Commands, Swarms, Comparisons, StrategyPages, MuseumPages, ReadOnlyAdmin):
    first_step = ("Run a load test", "loadtest_trial_swarm")
    list_display = ("__str__", "workload", "store", "hazard", "started", "time_taken", "verdicts")
    list_filter = ("command", "workload", "store", ("adversary", HazardFilter))

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).prefetch_related("results")

    @admin.display(ordering="adversary")
    def hazard(self, trial: Trial) -> str:
        return "–" if trial.adversary == "none" else trial.adversary

    @admin.display(description="took")
    def time_taken(self, trial: Trial) -> str:
        return took(trial.started, trial.ended)

    @admin.display
    def verdicts(self, trial: Trial) -> str:
        told = [(_subject(each), each.verdict, each.verdict) for each in trial.results.all()]
        if not told:
            return "–"
        words = format_html_join(" ", '<span class="whole">{} <span class="word {}">{}</span></span>', told)
        return format_html('<span class="cell">{}</span>', words)


@admin.register(Result)
class ResultAdmin(TwoByTwo, ReadOnlyAdmin):
    first_step = ("Compare strategies", "loadtest_trial_compare")
    list_display = ("subject", "word", "trial", "created")
    list_filter = ("verdict", "strategy")
    list_select_related = ("trial",)
    ordering = ("-pk",)
    readonly_fields = ("strategy_page", "word", "why", "losses", "schedule", "evidence")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """A swarm's result has a book, an exploration's has a schedule: what it has not is not shown."""
        has = {
            "book": obj and obj.book_id,
            "losses": obj and _worst(obj),
            "schedule": obj and schedule(obj.data),
        }
        fields = ("trial", "strategy_page", "word", "why", "book", "losses", "schedule", "evidence")
        return [each for each in fields if has.get(each, True)]

    @admin.display(description="strategy", ordering="strategy")
    def subject(self, result: Result) -> str:
        return _subject(result)

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
        number = _worst(result)
        page = reverse("admin:ledger_book_losses", args=[result.book_id, number])
        return format_html('<a href="{}">account {}</a>', page, number)

    @admin.display(description="the smallest schedule that breaks it")
    def schedule(self, result: Result) -> str:
        sentences = format_html_join("", "<li>{}</li>", ((each,) for each in schedule(result.data)))
        return format_html('<ol class="told">{}</ol>', sentences)

    @admin.display
    def evidence(self, result: Result) -> str:
        whole = json.dumps(result.data, indent=2, ensure_ascii=False, sort_keys=True)
        return format_html(
            '<details><summary>The whole result, as in the JSON file</summary><pre class="textbook">{}</pre></details>',
            whole,
        )


def _subject(result: Result) -> str:
    """Return the strategy's name, and what else tells this result from the others of its trial."""
    return ", ".join(filter(None, (result.strategy, result.data.get("way"), result.data.get("hazard"))))


def _worst(result: Result) -> str | None:
    """Return the number of the account that lost most, if the book still has it."""
    return result.data.get("worst_account") if result.book_id else None
