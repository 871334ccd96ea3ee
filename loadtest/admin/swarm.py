"""The form of a load test in the admin: a workload, strategies, how many callers for how long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from unfold.widgets import (
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
)

from ledger.admin.import_form import number
from ledger.strategies import CARD, CONTROL
from loadtest.admin.estimate import of_swarm
from loadtest.admin.strategies_field import asked_for, strategies_field
from loadtest.background.swarms import SWARMS
from loadtest.swarm.compare import Comparison
from loadtest.workloads import WORKLOADS, Option
from loadtest.workloads.base import MOST_ACCOUNTS

MAX_USERS, MAX_SECONDS = 64, 60


class SwarmForm(forms.Form):
    """`plan()`: what is asked for."""

    workload = forms.ChoiceField(
        choices=[(slug, found.title) for slug, found in WORKLOADS.items()], widget=UnfoldAdminSelectWidget
    )
    strategies = strategies_field()
    users = number("Callers", 20, 2, MAX_USERS, "Each waits for its answer, then calls again.")
    seconds = number("Seconds", 5, 1, MAX_SECONDS, "For each strategy.")
    accounts = number("Accounts", 1, 1, MOST_ACCOUNTS, "1: all callers meet on one hot account.")
    think = number(
        "Think time, ms", 5, 0, 1000, "The longest time that the business works between read and write."
    )
    poll = number("Poll, ms", 10, 1, 10_000, "How often a waiting lock tries again.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for slug, found in WORKLOADS.items():
            for option in found.declared():
                self.fields[f"{slug}-{option.name}"] = _field(option)

    def options(self) -> Iterator[tuple[str, str, str, list[forms.BoundField]]]:
        """Yield for each workload its slug, its title, its law and the fields of its own options."""
        for slug, found in WORKLOADS.items():
            fields = [self[f"{slug}-{option.name}"] for option in found.declared()]
            yield slug, found.title, found.law, fields

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not self.errors:
            try:
                list(self.plan().cases())
            except ValueError as error:
                field = (
                    f"{cleaned['workload']}-{str(error).split(':')[0]}"  # its sentence begins with the name
                )
                self.add_error(field if field in self.fields else "workload", str(error))
        return cleaned

    def chosen_options(self) -> dict[str, Any]:
        """Return the chosen workload's options that are not their defaults."""
        slug = self.cleaned_data["workload"]
        given = {each.name: self.cleaned_data[f"{slug}-{each.name}"] for each in WORKLOADS[slug].declared()}
        defaults = {each.name: each.default for each in WORKLOADS[slug].declared()}
        return {
            name: value
            for name, value in given.items()
            if value not in (None, "") and value != defaults[name]
        }

    def plan(self) -> Comparison:
        """Return the comparison, the control first."""
        chosen = self.cleaned_data
        return Comparison(
            strategies=tuple(dict.fromkeys([CONTROL, *(chosen["strategies"] or CARD)])),
            workload=chosen["workload"],
            workload_options=self.chosen_options(),
            accounts=chosen["accounts"],
            users=chosen["users"],
            seconds=float(chosen["seconds"]),
            settings={"think": [0.0, chosen["think"] / 1000], "poll": chosen["poll"] / 1000},
        )


def _field(option: Option) -> forms.Field:
    """Return the field of one option; empty means its default. The workload itself refuses a wrong value."""
    told = {
        "label": f"{option.about[0].upper()}{option.about[1:]}",
        "required": False,
        "initial": option.default,
        "help_text": f"On a command line: {option.name}={option.default}".replace("=True", "=true"),
    }
    if option.kind is bool:  # no tick: a browser sends nothing for one that is not set
        return forms.TypedChoiceField(
            choices=[("True", "yes"), ("False", "no")],
            coerce=lambda text: text == "True",
            widget=UnfoldAdminSelectWidget,
            **told,
        )
    if option.kind is int:
        return forms.IntegerField(widget=UnfoldAdminIntegerFieldWidget, **told)
    widget = UnfoldAdminDecimalFieldWidget(attrs={"step": "any"})
    return forms.FloatField(widget=widget, **told)


class Swarms:
    """What `TrialAdmin` adds besides: start a swarm."""

    admin_site: Any

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.swarm_view)
        return [path("swarm/", view, name="loadtest_trial_swarm"), *super().get_urls()]  # type: ignore[misc]

    def swarm_view(self, request: HttpRequest) -> HttpResponse:
        """Show the form; on POST store the comparison, which a background worker takes up."""
        if not request.user.has_perm("loadtest.add_trial"):
            raise PermissionDenied
        form = SwarmForm(request.POST or None, initial=asked_for(request))
        if "estimate" in request.POST:
            return TemplateResponse(request, "loadtest/parts/estimate.html", {"estimate": of_swarm(form)})
        if request.method == "POST" and form.is_valid():
            try:
                return redirect("admin:loadtest_trial_change", SWARMS.begin(form.plan(), request.user).pk)
            except ValueError as error:
                form.add_error(None, str(error))
        page = {"title": "Run a load test", "form": form, "estimate": of_swarm(form)}
        context = {**self.admin_site.each_context(request), **page}
        return TemplateResponse(request, "loadtest/swarm.html", context)
