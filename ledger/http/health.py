"""Two checks for a load balancer: is the process alive, and can it do its work?"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from ledger.resources import redis_client

#: seconds after which a silent server counts as away
PATIENCE = 3.0


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


class Question:
    """Asks one server, in a thread of its own, one question at a time. Otherwise a server that is up but silent would
    take the web's threads one by one, and `live` would fail too."""

    def __init__(self, ask: Callable[[], None]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._future: Future[str] | None = None

    def begun(self) -> Future[str]:
        """Return the question that is under way, or ask a new one."""
        with self._lock:
            if self._future is None or self._future.done():
                self._future = Future()
                threading.Thread(target=self._run, args=(self._future,), daemon=True).start()
            return self._future

    def _run(self, future: Future[str]) -> None:
        try:
            self._ask()
        except Exception as error:  # noqa: BLE001  (after any error the server counts as away)
            future.set_result(type(error).__name__)
        else:
            future.set_result("ok")


def _answer(future: Future[str]) -> str:
    try:
        return future.result(PATIENCE)
    except TimeoutError:
        return "TimeoutError"


def _database() -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    finally:
        connection.close()  # this thread's own


def _redis() -> None:
    redis_client().ping()


QUESTIONS = {"database": Question(_database), "redis": Question(_redis)}
