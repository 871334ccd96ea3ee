"""OpenTelemetry traces of the web's requests, if OTEL_TRACES_EXPORTER asks for them. Off by default.

pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http opentelemetry-instrumentation-django
OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318   (its other variables work as well)
OTEL_TRACES_EXPORTER=console                                                  each span on standard output
"""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

KINDS = ("none", "otlp", "console")


def start(kind: str) -> bool:
    """Trace the requests from now on, and return whether that is so. Call it before the middleware is loaded.

    Raises ImproperlyConfigured for an unknown `kind`, or if OpenTelemetry is not installed.
    """
    if kind not in KINDS:
        raise ImproperlyConfigured(f"OTEL_TRACES_EXPORTER={kind!r}: write one of {', '.join(KINDS)}")
    if kind == "none":
        return False
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.instrumentation.django import DjangoInstrumentor
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import (
            BatchSpanProcessor,
            ConsoleSpanExporter,
            SimpleSpanProcessor,
        )
    except ImportError as error:
        told = f"OTEL_TRACES_EXPORTER={kind}: {error}. What to install: docs/operating.md, 'Traces'"
        raise ImproperlyConfigured(told) from error
    provider = TracerProvider()
    provider.add_span_processor(
        BatchSpanProcessor(OTLPSpanExporter())
        if kind == "otlp"
        else SimpleSpanProcessor(ConsoleSpanExporter())
    )
    trace.set_tracer_provider(provider)
    DjangoInstrumentor().instrument()
    return True
