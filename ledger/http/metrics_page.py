"""`/metrics`, in Prometheus' own format.

GET /metrics                                    from this machine, without METRICS_TOKEN → 200
GET /metrics, Authorization: Bearer <METRICS_TOKEN>                                      → 200
GET /metrics                                    anybody else                             → 403, with what to set
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector

from ledger.addresses import NoServers
from ledger.http.question import PATIENCE, ServerQuestion

PATH = "/metrics"
#: of every database client, by whatever strategy, from the one who knows: the server
_ASK = """
SELECT deadlocks, (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
    AND wait_event_type = 'Lock')
FROM pg_stat_database WHERE datname = current_database()
"""


class MetricsMiddleware:
    """Answers before all others: Prometheus names a container by its address, which is no allowed host, and it follows
    no redirect to TLS."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return metrics_page(request) if request.path == PATH else self.get_response(request)


@require_safe
def metrics_page(request: HttpRequest) -> HttpResponse:
    """The metrics of all of this web server's processes, and the database's."""
    if why := _no_entry(request):
        return HttpResponse(f"{why}\n", status=403, content_type="text/plain")
    return HttpResponse(exposition(), content_type=CONTENT_TYPE_LATEST)


def exposition() -> bytes:
    """Return the metrics as Prometheus reads them."""
    registry = CollectorRegistry()
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        MultiProcessCollector(registry)
        registry.register(Database())
        return generate_latest(registry)
    registry.register(Database())
    return generate_latest(REGISTRY) + generate_latest(registry)


def _no_entry(request: HttpRequest) -> str:
    """Return why this caller gets no metrics. They name strategies and amounts, and a scrape costs time."""
    if settings.METRICS_TOKEN:
        sent = request.headers.get("Authorization", "").encode()
        known = secrets.compare_digest(sent, f"Bearer {settings.METRICS_TOKEN}".encode())
        return "" if known else "send Authorization: Bearer and the METRICS_TOKEN of this server"
    forwarded = {"X-Forwarded-For", "X-Forwarded-Proto", "Forwarded"} & set(request.headers)
    if forwarded or not _is_loopback(request.META.get("REMOTE_ADDR", "")):
        return "without METRICS_TOKEN the metrics are for this machine only: set one, and send it as a bearer token"
    return ""


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False  # a unix socket: a proxy may be at the other end


def _asked() -> tuple[int, int]:
    with connection.cursor() as cursor:
        cursor.execute(_ASK)
        deadlocks, waiting = cursor.fetchone()
    return deadlocks, waiting


_DATABASE = ServerQuestion(_asked)


class Database:
    """What PostgreSQL itself knows, asked at each scrape. All processes report the same: take the maximum. While it is
    away or says nothing, the scrape has the rest."""

    def collect(self) -> Iterator[Any]:
        up = GaugeMetricFamily("lab_database_up", "Whether PostgreSQL answered")
        try:
            deadlocks, waiting = _DATABASE.begun().result(PATIENCE)
        except (DatabaseError, NoServers, TimeoutError):
            up.add_metric([], 0)
            yield up
            return
        up.add_metric([], 1)
        yield up
        yield CounterMetricFamily(
            "lab_database_deadlocks", "Deadlocks that PostgreSQL broke", value=deadlocks
        )
        yield GaugeMetricFamily(
            "lab_database_lock_waiters", "Sessions that wait for a lock right now", value=waiting
        )
