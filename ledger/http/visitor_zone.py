"""Times are shown in the visitor's own time zone. admin.js stores its name in a cookie; without it they are in UTC."""

from __future__ import annotations

from collections.abc import Callable
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

COOKIE = "zone"


class VisitorZoneMiddleware:
    """Activate the zone that the cookie names, for this request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with timezone.override(zone_of(request.COOKIES.get(COOKIE, ""))):
            return self.get_response(request)


def zone_of(name: str) -> ZoneInfo | None:
    """Return the zone called `name`, such as Europe/Berlin. None, which means UTC here, for a name that is no zone."""
    try:
        return ZoneInfo(name) if name else None
    except (
        ZoneInfoNotFoundError,
        ValueError,
        OSError,
    ):  # OSError: the name of a folder, or a name that is too long
        return None
