"""A lane's process ends with the process that began it, and its servers with it."""

import signal
import subprocess
import sys

import psutil

from tests.lost_update_lab.embedded.test_owner_dies import assert_nothing_left
from tests.test_house import ROOT

PARENT = """
import multiprocessing, os, sys
from concurrent.futures import ProcessPoolExecutor
from museum import lane
with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), lane.begin) as lanes:
    print(lanes.submit(os.getpid).result(), flush=True)
    sys.stdin.read()
"""


def test_a_killed_parent_leaves_nothing() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout
        lane = psutil.Process(int(parent.stdout.readline()))
        processes = [lane, *lane.children(recursive=True)]
        assert len(processes) > 2
        parent.send_signal(signal.SIGKILL)
    assert_nothing_left(processes, [])
