"""Stopping a comparison in the admin: what runs now is finished and judged, nothing further is begun."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST

from loadtest.background.commands import stop_waiting
from loadtest.models import Trial
from loadtest.swarm.background_comparison import COMMAND as SWARM


class Stops:
    """What `TrialAdmin` adds besides: the answer to the button "Stop"."""

    admin_site: Any

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.stop_view)
        stop = path("<int:trial_id>/stop/", view, name="loadtest_trial_stop")
        return [stop, *super().get_urls()]  # type: ignore[misc]

    @method_decorator(require_POST)
    def stop_view(self, request: HttpRequest, trial_id: int) -> HttpResponse:
        trial = self._trial(request, trial_id)  # type: ignore[attr-defined]
        if not request.user.has_perm("loadtest.add_trial"):
            raise PermissionDenied
        # the background workers read this field before they begin the next strategy, and write it never
        now = timezone.now()
        asked = Trial.objects.filter(pk=trial.pk, ended=None, stopped=None).update(stopped=now)
        # a swarm that waits for another one's end has nothing to finish
        Trial.objects.filter(pk=trial.pk, ended=None, command=SWARM, options__at=None).update(ended=now)
        stop_waiting(trial.pk)
        messages.info(
            request, "No further strategy will start." if asked else "The comparison has already ended."
        )
        return redirect("admin:loadtest_trial_change", trial.pk)
