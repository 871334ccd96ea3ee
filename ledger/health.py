"""Two questions for a load balancer: is the process alive, and can it do its work?"""

from __future__ import annotations

from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from ledger.resources import redis_client


@require_safe
def live(request: HttpRequest) -> JsonResponse:
    """200 while the process answers, whatever its servers do."""
    return JsonResponse({"status": "ok"})


@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """200 when PostgreSQL and Valkey both answer, else 503 naming those that do not."""
    answers = {"database": _database, "redis": _redis}
    status = {name: ask() for name, ask in answers.items()}
    good = all(answer == "ok" for answer in status.values())
    return JsonResponse({"status": "ok" if good else "unavailable", **status}, status=200 if good else 503)


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Exception as error:  # noqa: BLE001  (whatever it is, the database does not answer)
        connection.close()
        return type(error).__name__
    return "ok"


def _redis() -> str:
    try:
        redis_client().ping()
    except Exception as error:  # noqa: BLE001
        return type(error).__name__
    return "ok"
