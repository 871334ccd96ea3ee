"""The machine of a measurement: versions of Python and packages, cores, commit. Asks no server."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ledger.addresses import BASE_DIR

PACKAGES = ("django", "psycopg", "redis", "hiredis", "gunicorn", "locust", "procrastinate", "lost-update-lab")


def machine(servers: dict[str, str]) -> dict[str, Any]:
    """Return `versions` (with those of the `servers`), `cores`, `machine` and `commit` (None outside a checkout)."""
    return {
        "versions": {"python": platform.python_version(), **_packages(), **servers},
        "cores": cores(),
        "machine": f"{platform.system()} {platform.release()} {platform.machine()}",
        "commit": _git("rev-parse", "HEAD"),
        "changed": bool(_git("status", "--porcelain", "--untracked-files=no")),
    }


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _packages() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(BASE_DIR), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
