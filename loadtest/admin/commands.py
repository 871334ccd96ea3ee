"""The forms of explore, faults and trust in the admin, and what a page shows of them."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminSelectWidget

from ledger.admin.import_form import number
from ledger.strategies import CONTROL
from loadtest.admin.estimate import of_command
from loadtest.admin.strategies_field import asked_for, strategies_field
from loadtest.background.commands import (
    BACKGROUND_COMMANDS,
    COMMAND_LINES,
    EXPLORE,
    FAULTS,
    TRUST,
    TRUST_SECONDS,
    CommandRequest,
)
from loadtest.faults.hazards import ADVERSARIES
from loadtest.faults.sentences import about
from loadtest.findings.brief import brief
from loadtest.findings.gloss import plain
from loadtest.front.documents import in_line
from loadtest.models import Trial
from loadtest.report import command_line
from loadtest.report import page as report
from loadtest.trials import records
from loadtest.verdict.words import Word
from loadtest.workloads import EXPLORED
from locks.hazards import Hazard

#: command → its name on the screen, and what it does
COMMAND_TITLES = {
    EXPLORE: (
        "Explore every order",
        "Runs every order of the commands of two workers, with faults between them.",
    ),
    FAULTS: (
        "Inject faults",
        "Really does each hazard to real processes and servers, and judges what is left.",
    ),
    TRUST: (
        "Can I trust it?",
        "Puts a strategy through a load test, the explorer and the faults: one answer.",
    ),
}
#: command → the most strategies: of explore and faults the largest kind fits, of trust each takes minutes
MOST = {EXPLORE: 40, FAULTS: 40, TRUST: 2}
MOST_HAZARDS = 8
#: strategies that are chosen at first
FIRST = {EXPLORE: ["setnx", "token"], FAULTS: ["token"], TRUST: ["token"]}


class CommandForm(forms.Form):
    """`asked()`: what is to be run."""

    strategies = strategies_field()
    hazards = forms.MultipleChoiceField(
        required=False,
        choices=[(slug, slug) for slug in ADVERSARIES],
        initial=["pause", "crash-holding"],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        label="Hazards",
    )
    workload = forms.ChoiceField(
        choices=[(slug, slug) for slug in EXPLORED], widget=UnfoldAdminSelectWidget, label="Workload"
    )
    budget = number("Budget, s", 60, 5, 120, "The longest search for each strategy.")
    workers = number("Workers", 2, 2, 3, "Three take minutes where two take seconds.")
    faults = number("Faults", 1, 0, 2, "The most faults in one order.")

    def __init__(self, command: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.command = command
        self.fields["strategies"].initial = FIRST[command]
        unused = {EXPLORE: ["hazards"], FAULTS: ["workload", "budget", "workers", "faults"]}
        for name in unused.get(command, ["workload", "workers", "faults"]):
            del self.fields[name]

    def hazard_groups(self) -> list[tuple[str, list[Any]]]:
        """Return what happens in each hazard, and the ticks of its variants."""
        groups: dict[Hazard, list[Any]] = {}
        for box in self["hazards"]:
            groups.setdefault(ADVERSARIES[str(box.data["value"])].word, []).append(box)
        return [(about(hazard), boxes) for hazard, boxes in groups.items()]

    def clean_strategies(self) -> list[str]:
        chosen: list[str] = self.cleaned_data["strategies"]
        if not chosen:
            raise forms.ValidationError("Choose a strategy.")
        if len(chosen) > MOST[self.command]:
            raise forms.ValidationError(
                f"Choose {MOST[self.command]} strategies at most: each takes its time."
            )
        return chosen

    def clean_hazards(self) -> list[str]:
        chosen: list[str] = self.cleaned_data["hazards"]
        if not 1 <= len(chosen) <= MOST_HAZARDS:
            raise forms.ValidationError(f"Choose 1 to {MOST_HAZARDS} hazards.")
        return chosen

    def asked(self) -> CommandRequest:
        chosen: dict[str, Any] = {
            name: tuple(v) if isinstance(v, list) else v for name, v in self.cleaned_data.items()
        }
        return CommandRequest(command=self.command, **chosen)


class Commands:
    """What `TrialAdmin` adds besides: start explore, faults and trust; download what they found."""

    admin_site: Any

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            *(
                path(
                    f"{command}/", view(self.command_view), {"command": command}, f"loadtest_trial_{command}"
                )
                for command in BACKGROUND_COMMANDS
            ),
            path(
                "<int:trial_id>/results.<str:kind>", view(self.download_view), name="loadtest_trial_download"
            ),
            *super().get_urls(),  # type: ignore[misc]
        ]

    def command_view(self, request: HttpRequest, command: str) -> HttpResponse:
        """Show the form; on POST store the request, which a background worker takes up."""
        if not request.user.has_perm("loadtest.add_trial"):
            raise PermissionDenied
        form = CommandForm(command, request.POST or None, initial=asked_for(request))
        if "estimate" in request.POST:
            shown = {"estimate": of_command(form, command)}
            return TemplateResponse(request, "loadtest/parts/estimate.html", shown)
        if request.method == "POST" and form.is_valid():
            try:
                return redirect(
                    "admin:loadtest_trial_change", COMMAND_LINES.begin(form.asked(), request.user).pk
                )
            except ValueError as error:
                form.add_error(None, str(error))
        title, about = COMMAND_TITLES[command]
        page = {"title": title, "about": about, "form": form, "most": MOST[command]}
        page["estimate"] = of_command(form, command)
        context = {**self.admin_site.each_context(request), **page}
        return TemplateResponse(request, "loadtest/command.html", context)

    def download_view(self, request: HttpRequest, trial_id: int, kind: str) -> HttpResponse:
        """What a trial has found: as JSON, as the commands write it; as CSV; as the report in one file."""
        trial: Trial = self._trial(request, trial_id)  # type: ignore[attr-defined]
        found = records.report_of(trial, [result.data for result in trial.results.all()])
        found["options"] = _as_the_command(trial)
        if kind == "json":
            answer = HttpResponse(json.dumps(found, indent=2, ensure_ascii=False), "application/json")
        elif kind == "csv":
            answer = HttpResponse(content_type="text/csv; charset=utf-8")
            csv.writer(answer).writerows(_rows(found))
        elif kind == "html" and trial.command in report.EVIDENCE and found["results"]:
            shown = {**report.context({trial.command: found}), "alone": True}
            answer = HttpResponse(render_to_string("loadtest/report.html", shown))
        else:
            raise Http404(f"no results.{kind} of this trial")
        answer["Content-Disposition"] = f'attachment; filename="trial-{trial.pk}.{kind}"'
        return answer


def _as_the_command(trial: Trial) -> dict[str, Any]:
    """Return the options as the command itself writes them; of a comparison's row they are that already."""
    if trial.command not in BACKGROUND_COMMANDS:
        return dict(trial.options)
    asked = trial.options["asked"]
    if trial.command == EXPLORE:
        return {name: asked.get(name, usual) for name, usual in command_line.EXPLORE.items()}
    if trial.command == FAULTS:
        return {"plan": {"strategies": asked["strategies"], "hazards": asked["hazards"], "repeat": 1}}
    chosen = {"strategies": asked["strategies"], "hazard": asked["hazards"], "gate": []}
    return {**chosen, "seconds": TRUST_SECONDS, "budget": float(asked["budget"])}


def _rows(found: dict[str, Any]) -> Iterator[list[Any]]:
    yield ["strategy", "hazard", "verdict", "why"]
    for each in found["results"]:
        why = each.get("cause") or each.get("reason") or ""
        yield [each["strategy"], each.get("hazard", ""), each["verdict"], why]
        yield from ([each["strategy"], hazard, word, ""] for hazard, word in each.get("under", {}).items())


def schedule(data: dict[str, Any]) -> list[str]:
    """Return the smallest schedule of a result in sentences; none if it has none."""
    example = data.get("counterexample")
    return [in_line(each) for each in (brief(example) if example else data.get("schedule") or ())]


def findings(trial: Trial) -> dict[str, Any]:
    """Return what the page of such a trial shows: a block for each strategy, with a word for each hazard."""
    blocks: dict[str, dict[str, Any]] = {}
    for result in trial.results.all():
        block = blocks.setdefault(
            result.strategy, {"slug": result.strategy, "words": [], "verdict": result.verdict, "told": []}
        )
        data = result.data
        if trial.command == FAULTS and "hazard" in data:
            told = data.get("cause") or data.get("reason") or ""
            block["words"].append({"hazard": data["hazard"], "word": result.verdict, "told": told})
            block["verdict"] = ""
            continue
        block["why"] = plain(data.get("cause") or data.get("reason") or "")
        words = data.get("under") or {
            each["hazard"]: each["word"] for each in data.get("rows", ()) if each["word"]
        }
        block["words"] = [{"hazard": hazard, "word": word} for hazard, word in words.items()]
        block["schedules"] = data.get("schedules")
        block["told"] = schedule(data)
    for block in blocks.values():
        block["words"].sort(key=lambda each: Word(each["word"]).gravity)
    asked, done = trial.options["strategies"], trial.options["done"]
    order = [CONTROL, *asked] if CONTROL in blocks else asked
    return {
        "blocks": [blocks[slug] for slug in dict.fromkeys(order) if slug in blocks],
        "left": asked[done:],
        "at": asked[done] if trial.options.get("at") is not None else None,
        "said": trial.options.get("said", []),
    }
