"""How often somebody may try to log in: under one name from one address, and under all names from one address.

    ten names, ten guesses each, from one address → the address is locked out, whatever name it tries next

The second limit is the higher one: behind one address there may be an office. A login that succeeds clears what was
counted under its own name only, so that the owner of an account cannot guess others' passwords for ever.
"""

from __future__ import annotations

from typing import Any

from axes.attempts import get_cool_off_threshold
from axes.handlers.database import AxesDatabaseHandler
from axes.models import AccessAttempt
from django.conf import settings
from django.db.models import Sum
from django.http import HttpRequest


class LoginLimits(AxesDatabaseHandler):
    """django-axes, which has one limit, with a second one."""

    def get_failures(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """Return the failures of this name and address; if the address has too many in all, the limit at least."""
        failures: int = super().get_failures(request, credentials)
        if _of_address(request) < settings.LOGIN_ATTEMPTS_PER_ADDRESS:
            return failures
        limit: int = settings.AXES_FAILURE_LIMIT
        return max(failures, limit)


def _of_address(request: HttpRequest) -> int:
    address = request.axes_ip_address  # type: ignore[attr-defined]
    if address is None:  # a unix socket: everybody would have this address
        return 0
    recent = AccessAttempt.objects.filter(
        ip_address=address, attempt_time__gte=get_cool_off_threshold(request)
    )
    return recent.aggregate(all=Sum("failures_since_start"))["all"] or 0
