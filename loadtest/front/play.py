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
    address = reverse("front_positions", args=["slug"]).replace("slug", "{}")
    return render(request, "front/play.html", playable.context(address))


@require_safe
@cache_control(public=True, max_age=3600)
def positions(request: HttpRequest, slug: str) -> HttpResponse:
    """The positions of one level: half a megabyte, so compressed for whoever takes it so."""
    if slug not in playable.LEVELS:
        raise Http404(f"no level {slug}")
    if "gzip" not in request.headers.get("Accept-Encoding", ""):
        return HttpResponse(playable.text(slug), content_type="application/json")
    answer = HttpResponse(_compressed(slug), content_type="application/json")
    answer["Content-Encoding"] = "gzip"
    answer["Vary"] = "Accept-Encoding"
    return answer


@cache
def _compressed(slug: str) -> bytes:
    return gzip.compress(playable.text(slug).encode())
