"""The form of a swarm in the admin: a workload, strategies, how many callers for how long."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from ledger.admin.import_form import number
from ledger.strategies import CARD, CONTROL
from loadtest.admin.strategies_field import strategies_field
from loadtest.background.swarms import SWARMS
from loadtest.commandline.arguments import named_values
from loadtest.swarm.compare import Comparison
from loadtest.workloads import WORKLOADS
from loadtest.workloads.base import MOST_ACCOUNTS

MAX_USERS, MAX_SECONDS = 64, 60


class SwarmForm(forms.Form):
    """`plan()`: what is asked for."""

    workload = forms.ChoiceField(
        choices=[(slug, found.title) for slug, found in WORKLOADS.items()], widget=UnfoldAdminSelectWidget
    )
    options = forms.CharField(
        required=False,
        widget=UnfoldAdminTextInputWidget,
        label="Options of the workload",
        help_text="NAME=VALUE, such as reads=0.95, separated by spaces. Empty: the defaults.",
    )
    strategies = strategies_field()
    users = number("Callers", 20, 2, MAX_USERS, "Each waits for its answer, then calls again.")
    seconds = number("Seconds", 5, 1, MAX_SECONDS, "For each strategy.")
    accounts = number("Accounts", 1, 1, MOST_ACCOUNTS, "1: all callers meet on one hot account.")
    think = number(
        "Think time, ms", 5, 0, 1000, "The longest time that the business works between read and write."
    )
    poll = number("Poll, ms", 10, 1, 10_000, "How often a waiting lock tries again.")

    def clean_options(self) -> dict[str, Any]:
        try:
            return named_values(self.cleaned_data["options"])
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not self.errors:
            try:
                list(self.plan().cases())
            except ValueError as error:
                self.add_error("options", str(error))
        return cleaned

    def plan(self) -> Comparison:
        """Return the comparison, the control first."""
        chosen = self.cleaned_data
        return Comparison(
            strategies=tuple(dict.fromkeys([CONTROL, *(chosen["strategies"] or CARD)])),
            workload=chosen["workload"],
            workload_options=chosen["options"],
            accounts=chosen["accounts"],
            users=chosen["users"],
            seconds=float(chosen["seconds"]),
            settings={"think": [0.0, chosen["think"] / 1000], "poll": chosen["poll"] / 1000},
        )


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
        form = SwarmForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            try:
                return redirect("admin:loadtest_trial_change", SWARMS.begin(form.plan(), request.user).pk)
            except ValueError as error:
                form.add_error(None, str(error))
        page = {"title": "Run a load test", "form": form, "workloads": WORKLOADS.values()}
        context = {**self.admin_site.each_context(request), **page}
        return TemplateResponse(request, "loadtest/swarm.html", context)
