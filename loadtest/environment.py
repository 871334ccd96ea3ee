"""Where a result was measured: versions, cores, commit. Goes into every JSON."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from django.db import connection

from ledger.addresses import BASE_DIR
from ledger.resources import redis_client

PACKAGES = ("django", "psycopg", "redis", "gunicorn", "locust", "procrastinate", "lost-update-lab")


def environment() -> dict[str, Any]:
    """Return `versions`, `cores`, `machine` and `commit` (None outside a checkout)."""
    return {
        "versions": {"python": platform.python_version(), **_packages(), **_servers()},
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "machine": f"{platform.system()} {platform.release()} {platform.machine()}",
        "commit": _git("rev-parse", "HEAD"),
        "changed": bool(_git("status", "--porcelain", "--untracked-files=no")),
    }


def _packages() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _servers() -> dict[str, str]:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        postgres = cursor.fetchone()
    info = redis_client().info("server")
    name = "valkey" if "valkey_version" in info else "redis"
    return {"postgresql": str(postgres[0]), name: str(info[f"{name}_version"])}


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(BASE_DIR), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
