"""Pin a lane to one core. Its process and its servers take turns, and a turn that moves to another core pays for a
wake-up there. Where the system cannot pin (macOS), nothing is done."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import psutil
from django.db import connection
from django.db.backends.signals import connection_created

OURS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"


def core_of(lane: int) -> int | None:
    """Return the core for lane number `lane`, of those that this process may use. None: the system cannot say."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    cores = sorted(os.sched_getaffinity(0))
    return cores[lane % len(cores)]


def keep_to(core: int | None, pids: Iterable[int]) -> None:
    """Pin these processes; those that have ended are left out."""
    if core is None:
        return
    for pid in pids:
        with suppress(psutil.Error):
            psutil.Process(pid).cpu_affinity([core])


def keep_here(core: int | None) -> None:
    """Pin this process, and each session of PostgreSQL that Django begins in it from now on."""
    keep_to(core, [os.getpid()])
    if core is not None:
        connection_created.connect(_keep_session_here, dispatch_uid="cores")


def _keep_session_here(connection: Any, **_: Any) -> None:
    """After a crash or a lost reply a worker begins another one, and its server process would run on any core. That is
    in the middle of a schedule, where psutil's files would count as the worker's."""
    if connection.vendor == "postgresql":
        with suppress(OSError):
            os.sched_setaffinity(connection.connection.info.backend_pid, os.sched_getaffinity(0))


def keep_sessions_here() -> None:
    """Pin this process's PostgreSQL sessions to its core, if it is pinned."""
    if hasattr(os, "sched_getaffinity") and len(cores := os.sched_getaffinity(0)) == 1:
        with connection.cursor() as cursor:
            cursor.execute(OURS)
            keep_to(min(cores), [pid for (pid,) in cursor.fetchall()])
