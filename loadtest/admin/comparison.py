"""Comparisons in the admin: the same files under each strategy, and a trial's results as one page."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.views.decorators.http import require_POST

from ledger.admin.book_pages import title_of
from ledger.admin.import_form import ImportForm
from ledger.imports.progress import progress
from ledger.imports.upload import Upload
from ledger.imports.ways import SET_BASED_UNDER, Way
from ledger.models import ImportBatch, ImportRun
from ledger.stores import store_of
from ledger.strategies import CARD
from loadtest.admin import live
from loadtest.admin.commands import findings
from loadtest.admin.estimate import of_imports
from loadtest.admin.strategies_field import strategies_field
from loadtest.background.imports import COMMAND as IMPORT
from loadtest.background.imports import IMPORTS, ImportComparison
from loadtest.background.swarms import COMMAND as SWARM
from loadtest.models import Trial
from loadtest.report.command_line import of_plan
from loadtest.verdict.words import explained
from loadtest.workloads import Opening

#: what background workers run: its page looks again by itself
WATCHED = (IMPORT, SWARM)


class CompareForm(ImportForm):
    """The form of an import, with several strategies instead of a book. Without any: the six of the card."""

    strategies = strategies_field()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        del self.fields["book"], self.fields["strategy"]

    def comparison(self) -> ImportComparison:
        """Return what is asked for."""
        chosen = self.cleaned_data
        return ImportComparison(
            files=tuple(chosen["uploads"]),
            opening=chosen["opening"],
            strategies=tuple(chosen["strategies"]) or CARD,
            workers=chosen["workers"],
            all_or_nothing=chosen["all_or_nothing"],
            scan=chosen["scan"],
            store=chosen["store"],
            settings=self.book_settings(),
        )


def again(run: ImportRun) -> ImportComparison:
    """Return the comparison that repeats an import: its files, its accounts as they were opened, its settings."""
    batches = run.batches.filter(kind=ImportBatch.Kind.FILE).exclude(state=ImportBatch.State.DUPLICATE)
    return ImportComparison(
        files=tuple(
            Upload(each.name, bytes(each.file.content))
            for each in batches.select_related("file")
            if each.file
        ),
        openings=tuple(
            Opening(row.number, row.opening, row.floor) for row in store_of(run.book).whole_accounts()
        ),
        workers=run.workers,
        all_or_nothing=run.all_or_nothing,
        scan=run.scan,
        store=run.book.store,
        settings=run.book.settings,
    )


class Comparisons:
    """What `TrialAdmin` adds to a list of trials: start a comparison, watch it, read it."""

    admin_site: Any

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("compare/", view(self.compare_view), name="loadtest_trial_compare"),
            path("compare/<int:run_id>/", view(require_POST(self.again_view)), name="loadtest_trial_again"),
            path("<int:trial_id>/results/", view(self.results_view), name="loadtest_trial_results"),
            *super().get_urls(),  # type: ignore[misc]
        ]

    def compare_view(self, request: HttpRequest) -> HttpResponse:
        """Show the form; on POST start a comparison with the files sent."""
        if not request.user.has_perm("loadtest.add_trial"):
            raise PermissionDenied
        form = CompareForm(request.POST or None, request.FILES or None)
        if "estimate" in request.POST:
            return TemplateResponse(request, "loadtest/parts/estimate.html", {"estimate": of_imports(form)})
        if request.method == "POST" and form.is_valid():
            try:
                return redirect(
                    "admin:loadtest_trial_change", IMPORTS.begin(form.comparison(), request.user).pk
                )
            except ValueError as error:
                form.add_error(None, str(error).split("\n"))
        page = {"title": "Compare strategies", "form": form, "estimate": of_imports(form)}
        context = {**self.admin_site.each_context(request), **page}
        return TemplateResponse(request, "loadtest/compare.html", context)

    def again_view(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """Start a comparison with the files of an import, which the user may see."""
        if not request.user.has_perms(["loadtest.add_trial", "ledger.view_importrun"]):
            raise PermissionDenied
        run = get_object_or_404(ImportRun, pk=run_id)
        try:
            return redirect("admin:loadtest_trial_change", IMPORTS.begin(again(run), request.user).pk)
        except ValueError as error:
            messages.error(request, str(error))
            return redirect("admin:ledger_importrun_change", run.pk)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        trial = self._trial(request, object_id)
        context = {**self.admin_site.each_context(request), **seen(trial), "title": str(trial)}
        return TemplateResponse(request, "loadtest/trial.html", context)

    def results_view(self, request: HttpRequest, trial_id: int) -> HttpResponse:
        """The part of a trial's page that changes while it runs, for htmx."""
        shown = seen(self._trial(request, trial_id))
        return TemplateResponse(request, shown["part"], shown)

    def _trial(self, request: HttpRequest, pk: Any) -> Trial:
        if not self.has_view_permission(request):  # type: ignore[attr-defined]
            raise PermissionDenied  # first: a 404 would tell what is there
        trial: Trial | None = self.get_object(request, str(pk))  # type: ignore[attr-defined]
        if trial is None:
            raise Http404(f"no trial {pk}")
        return trial


def seen(trial: Trial) -> dict[str, Any]:
    """Return what the page of a trial shows: a row for each strategy, judged, at work or yet to come."""
    if "asked" in trial.options:
        found = findings(trial)
        return {**found, "trial": trial, "part": "loadtest/command_results.html", "watched": not trial.ended}
    options, results = trial.options, list(trial.results.all())
    strategies = options.get("strategies") or [result.strategy for result in results]
    stores = options.get("stores") or [result.data.get("store") for result in results]
    imports = options.get("imports", {})
    rows: list[dict[str, Any]] = []
    ways = options.get("ways") or strategies
    for place, subject in enumerate(strategies):  # judged in this order, one result each
        result = results[place] if place < len(results) else None
        run = ImportRun.objects.filter(pk=imports.get(subject)).first()
        set_based = ways[place] == Way.SET_BASED
        slug = SET_BASED_UNDER if set_based else subject
        row = {"slug": slug, "title": "Set-based import" if set_based else title_of(slug), "result": result}
        row |= {"run": run, "way": Way.SET_BASED.label if set_based else ""}
        if len(set(stores)) > 1:
            row["store"] = stores[place]
        if result:
            row["data"] = result.data
        elif run:
            row["progress"] = progress(run)
        else:
            row["at_work"] = place == options.get("at")
        rows.append(row)
    return {
        "trial": trial,
        "part": "loadtest/trial_results.html",
        "rows": rows,
        "watched": not trial.ended and trial.command in WATCHED,
        "drawings": live.running(trial) or live.judged([result.data for result in results]),
        "words": explained(result.verdict for result in results),
        "again": of_plan(options["plan"])
        if trial.command in (SWARM, "compare") and "plan" in options
        else "",
    }
