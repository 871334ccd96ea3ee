"""The Django app."""

from django.apps import AppConfig
from django.conf import settings


class LedgerConfig(AppConfig):
    name = "ledger"
    verbose_name = "Ledger"

    def ready(self) -> None:
        from ledger import traces
        from ledger.config import checks  # noqa: F401  (registers itself)
        from ledger.http.metrics_server import listen_if_worker

        listen_if_worker()
        traces.start(settings.OTEL_TRACES_EXPORTER)
