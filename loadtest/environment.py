"""Where a result was measured: versions, cores, commit. Goes into every JSON."""

from __future__ import annotations

from typing import Any

from django.db import connection

from ledger.resources import redis_client
from loadtest.machine import machine


def environment() -> dict[str, Any]:
    """Return `versions`, `cores`, `machine` and `commit` (None outside a checkout)."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        postgres = cursor.fetchone()
    info = redis_client().info("server")
    name = "valkey" if "valkey_version" in info else "redis"
    return machine({"postgresql": str(postgres[0]), name: str(info[f"{name}_version"])})
