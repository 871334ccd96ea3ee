"""What `manage.py check --deploy` asks beyond Django's own questions."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import Tags, Warning, register


@register(Tags.security, deploy=True)
def api_token(app_configs: Any, **options: Any) -> list[Warning]:
    """The API moves money: beyond loopback it must not be open."""
    if settings.API_TOKEN:
        return []
    return [
        Warning(
            "API_TOKEN is not set: anyone who reaches the API may post.",
            hint="Set API_TOKEN.",
            id="ledger.W001",
        )
    ]
