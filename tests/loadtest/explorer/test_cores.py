"""A lane keeps to one core, with its servers."""

from __future__ import annotations

import os
from typing import Any

import psutil
import pytest
from django.db import connection
from django.db.backends.signals import connection_created

from loadtest.explorer import cores
from loadtest.servers import Valkey

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity"), reason="this system binds no process to a core"
)


def test_lanes_share_out_the_cores_that_there_are() -> None:
    mine = sorted(os.sched_getaffinity(0))
    assert [cores.core_of(lane) for lane in range(len(mine) + 1)] == [*mine, mine[0]]


def test_a_server_keeps_to_the_core_of_its_lane() -> None:
    core = cores.core_of(0)
    with Valkey() as valkey:
        cores.keep_to(core, [valkey.pid])
        assert psutil.Process(valkey.pid).cpu_affinity() == [core]
        pid = valkey.pid
    cores.keep_to(core, [pid])  # it has ended: no error


def test_nothing_is_done_where_nobody_can_say() -> None:
    before = psutil.Process().cpu_affinity()
    cores.keep_to(None, [os.getpid()])
    assert psutil.Process().cpu_affinity() == before


def test_a_session_that_begins_later_keeps_to_it_too(django_db_blocker: Any) -> None:
    """After a crash a worker begins another one. Its server process ran on any core."""
    core, before = cores.core_of(0), os.sched_getaffinity(0)
    sql = connection.copy()
    try:
        cores.keep_here(core)
        with django_db_blocker.unblock(), sql.cursor():
            assert psutil.Process(sql.connection.info.backend_pid).cpu_affinity() == [core]
    finally:
        connection_created.disconnect(dispatch_uid="cores")
        os.sched_setaffinity(0, before)
        sql.close()
