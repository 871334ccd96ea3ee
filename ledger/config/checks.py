"""What `manage.py check --deploy` checks beyond Django's own list."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import Tags, Warning, register


@register(Tags.security, deploy=True)
def api_token(app_configs: Any, **options: Any) -> list[Warning]:
    """The API moves money, so it must not be open beyond loopback."""
    if settings.API_TOKEN:
        return []
    return [
        Warning(
            "API_TOKEN is not set: anyone who reaches the API may post.",
            hint="Set API_TOKEN.",
            id="ledger.W001",
        )
    ]


@register(Tags.security, deploy=True)
def trusted_proxies(app_configs: Any, **options: Any) -> list[Warning]:
    """Behind TLS there is a proxy, and all callers would have its address."""
    if settings.TRUSTED_PROXIES:
        return []
    return [
        Warning(
            "TRUSTED_PROXIES is not set: behind a proxy, the wrong passwords of one caller lock out all.",
            hint="Set TRUSTED_PROXIES to the proxy's address or network; without a proxy, to 127.0.0.1.",
            id="ledger.W002",
        )
    ]
