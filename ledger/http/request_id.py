"""Each request has an id, which its answer and every log record about it carry: X-Request-ID.

a caller or a proxy sends X-Request-ID: a1  → the answer has it too, and so have the logs
nobody sends one, or one that is no plain word → a new one
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from ledger.logs import POSTING, REQUEST, about

HEADER = "X-Request-ID"
_PLAIN = re.compile(r"[A-Za-z0-9_.:-]{1,100}")
log = logging.getLogger("ledger.request")


class RequestIdMiddleware:
    """Names the request, and logs how it was answered (level INFO)."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        sent, key = request.headers.get(HEADER, ""), request.headers.get("Idempotency-Key", "")
        ident = sent if _PLAIN.fullmatch(sent) else uuid.uuid4().hex
        with about(REQUEST, ident), about(POSTING, key[:100]):
            began = time.perf_counter()
            answer = self.get_response(request)
            ms = round((time.perf_counter() - began) * 1000, 1)
            told = {"status": answer.status_code, "ms": ms}
            log.info("%s %s %d", request.method, request.path, answer.status_code, extra=told)
        answer[HEADER] = ident
        return answer
