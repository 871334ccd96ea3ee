"""Stopping a comparison in the admin: what runs now is finished and judged, nothing further is begun."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST

from loadtest.background.runner import stop


class Stops:
    """What `TrialAdmin` adds besides: the answer to the button "Stop"."""

    admin_site: Any

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.stop_view)
        button = path("<int:trial_id>/stop/", view, name="loadtest_trial_stop")
        return [button, *super().get_urls()]  # type: ignore[misc]

    @method_decorator(require_POST)
    def stop_view(self, request: HttpRequest, trial_id: int) -> HttpResponse:
        trial = self._trial(request, trial_id)  # type: ignore[attr-defined]
        if not request.user.has_perm("loadtest.add_trial"):
            raise PermissionDenied
        messages.info(
            request,
            "No further strategy will start." if stop(trial.pk) else "The comparison has already ended.",
        )
        return redirect("admin:loadtest_trial_change", trial.pk)
