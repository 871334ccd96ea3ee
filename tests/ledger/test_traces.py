"""OpenTelemetry traces: off unless asked for; then each request of the real web server is a span."""

from __future__ import annotations

import sys
import urllib.request
from typing import Any

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from ledger import traces
from loadtest.servers.webserver import WebServer
from tests.locks.actor import eventually


@pytest.mark.deep
@pytest.mark.usefixtures("committed_db")
def test_a_request_becomes_a_span() -> None:
    with WebServer(workers=1, threads=1, environment={"OTEL_TRACES_EXPORTER": "console"}) as web:
        urllib.request.urlopen(f"{web.url}/health/live", timeout=30).close()
        eventually(lambda: '"name": "GET health/live"' in web.log.read_text(), "a span")


def test_they_are_off_by_default() -> None:
    assert settings.OTEL_TRACES_EXPORTER == "none"
    assert traces.start("none") is False


def test_an_unknown_exporter_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match="OTEL_TRACES_EXPORTER='jaeger': write one of none, otlp"):
        traces.start("jaeger")


def test_without_the_extra_it_says_what_to_install(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.instrumentation.django", None)
    with pytest.raises(ImproperlyConfigured, match=r"What to install: docs/operating\.md, 'Traces'"):
        traces.start("console")
