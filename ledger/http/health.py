"""Two checks for a load balancer: is the process alive, and can it do its work?"""

from __future__ import annotations

from concurrent.futures import Future

from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from ledger.http.question import PATIENCE, ServerQuestion
from ledger.resources import redis_client


@require_safe
def live(request: HttpRequest) -> JsonResponse:
    """200 as long as the process answers, even while its servers are away."""
    return JsonResponse({"status": "ok"})


@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """200 if PostgreSQL and Valkey both answer within PATIENCE; otherwise 503, which names those that do not."""
    asked = {name: question.begun() for name, question in QUESTIONS.items()}
    status = {name: _answer(future) for name, future in asked.items()}
    good = all(answer == "ok" for answer in status.values())
    return JsonResponse({"status": "ok" if good else "unavailable", **status}, status=200 if good else 503)


def _answer(future: Future[None]) -> str:
    try:
        future.result(PATIENCE)
    except Exception as error:  # noqa: BLE001  (after any error the server counts as away)
        return type(error).__name__
    return "ok"


def _database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _redis() -> None:
    redis_client().ping()


QUESTIONS = {"database": ServerQuestion(_database), "redis": ServerQuestion(_redis)}
