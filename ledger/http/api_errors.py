"""Every error under /api/ and /health/ is JSON, even one that the API does not raise: an unknown address, a method that
the address does not allow, a host that Django refuses.

    POST /api/book → 404 {"detail": "no such address: /api/book; /api/openapi.json lists them", "applied": "no"}
"""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, JsonResponse


class JsonErrorsMiddleware:
    """The outermost middleware, which sees the answers of all others. It keeps headers such as `Allow`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        answer = self.get_response(request)
        if answer.status_code < 400 or not request.path.startswith(("/api/", "/health/")) or _is_json(answer):
            return answer
        applied = "no" if answer.status_code < 500 else "unknown"
        told = JsonResponse({"detail": _detail(request, answer), "applied": applied})
        answer.content, answer["Content-Type"] = told.content, told["Content-Type"]
        if "Content-Length" in answer:
            answer["Content-Length"] = str(len(told.content))
        return answer


def _is_json(answer: HttpResponse) -> bool:
    return answer.get("Content-Type", "").startswith("application/json")


def _detail(request: HttpRequest, answer: HttpResponse) -> str:
    if answer.status_code == 404:
        return f"no such address: {request.path[:200]}; /api/openapi.json lists them"
    if answer.status_code == 405:
        allowed = ", ".join(sorted(answer.get("Allow", "").split(", ")))
        return f"{request.method} is not allowed here, only {allowed}"
    if answer.status_code == 400 and request.path.startswith("/health/"):
        return "this Host is not one of ALLOWED_HOSTS: a probe sends one of them"
    return answer.reason_phrase
