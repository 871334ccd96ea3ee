"""A lane keeps to one core, with its servers."""

from __future__ import annotations

import os

import psutil
import pytest

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
