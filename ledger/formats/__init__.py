"""How times are written where no template does it."""

from __future__ import annotations

from datetime import datetime

from django.utils.formats import date_format
from django.utils.timezone import localtime


def shown(at: datetime) -> str:
    """Return the time in the visitor's zone, with the zone: 2026-11-25 18:06:40 CET."""
    return date_format(localtime(at), "DATETIME_FORMAT")
