"""/play: the playable page, and the positions of its levels as JSON."""

from __future__ import annotations

import gzip
from functools import cache

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from loadtest.report import playable


@require_safe
def play(request: HttpRequest) -> HttpResponse:
    """The page. Its script fetches the level that somebody plays."""
    address = reverse("front_positions", args=["level"]).replace("level", "{}")
    return render(request, "front/play.html", playable.context(address))


@require_safe
@cache_control(public=True, max_age=3600)
def positions(request: HttpRequest, name: str) -> HttpResponse:
    """The positions of one level: half a megabyte, so compressed for clients that accept that."""
    if name not in playable.LEVELS:
        raise Http404(f"no level {name}")
    if "gzip" not in request.headers.get("Accept-Encoding", ""):
        return HttpResponse(playable.text(name), content_type="application/json")
    answer = HttpResponse(_compressed(name), content_type="application/json")
    answer["Content-Encoding"] = "gzip"
    answer["Vary"] = "Accept-Encoding"
    return answer


@cache
def _compressed(name: str) -> bytes:
    return gzip.compress(playable.text(name).encode())
