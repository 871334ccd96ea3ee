"""`/metrics` of a process that serves nothing else: a background worker with METRICS_LISTEN=host:port.

GET /metrics        as the web server's: ledger/http/metrics_page.py
GET /health/live    200 as long as the process runs: a container's health check
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

import waitress
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.handlers.wsgi import WSGIRequest

from ledger.http.metrics_page import PATH, metrics_page

LIVE = "/health/live"


def listen_if_worker() -> None:
    """Serve the metrics in a thread, if this process is a worker. Other commands have the same environment, and the
    address is taken."""
    if not settings.METRICS_LISTEN or sys.argv[1:3] != ["procrastinate", "worker"]:
        return
    try:
        server = waitress.create_server(_application, listen=settings.METRICS_LISTEN, threads=1, ident=None)
    except (OSError, ValueError) as error:
        told = f"METRICS_LISTEN={settings.METRICS_LISTEN}: {error}. Give a free host:port, such as 127.0.0.1:9101"
        raise ImproperlyConfigured(told) from error
    threading.Thread(target=server.run, name="metrics", daemon=True).start()


def _application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    if environ["PATH_INFO"] == LIVE:
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"ok\n"]
    if environ["PATH_INFO"] != PATH:
        start_response("404 Not Found", [("Content-Type", "text/plain")])
        return [f"only {PATH} and {LIVE} are here\n".encode()]
    answer = metrics_page(WSGIRequest(environ))
    start_response(f"{answer.status_code} {answer.reason_phrase}", list(answer.items()))
    return [answer.content]
