"""Whatever ends the process that started a server also ends the server."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from lost_update_lab.embedded.postgres import Postgres
from lost_update_lab.embedded.reaper import lives

OWNER = """
import os, sys
from loadtest.servers import Postgres, Valkey
postgres, valkey = Postgres().start(), Valkey().start()
print(postgres.pid, valkey.pid, postgres.run, valkey.run, flush=True)
{then}
"""


def owner(then: str) -> tuple[subprocess.Popen, list[psutil.Process], list[Path]]:
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER.format(then=then)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    first, second, *folders = process.stdout.readline().split()
    servers = [psutil.Process(int(first)), psutil.Process(int(second))]
    return process, servers + servers[0].children(recursive=True), [Path(f) for f in folders]


def assert_nothing_left(servers: list[psutil.Process], folders: list[Path]) -> None:
    """The folders go last."""
    deadline = time.monotonic() + 20
    while left := [x for x in servers if lives(x)] + [x for x in folders if x.exists()]:
        assert time.monotonic() < deadline, f"left: {left}"
        time.sleep(0.05)


@pytest.mark.deep
@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_owner_leaves_nothing(signum):
    process, servers, folders = owner("sys.stdin.read()")
    assert all(map(lives, servers))
    process.send_signal(signum)
    process.wait(100)
    assert_nothing_left(servers, folders)


@pytest.mark.deep
def test_an_owner_that_just_ends_leaves_nothing():
    process, servers, folders = owner("")
    process.wait(100)
    assert_nothing_left(servers, folders)


@pytest.mark.deep
def test_a_forked_child_does_not_keep_the_servers_alive():
    process, servers, folders = owner("child = os.fork()\nif child == 0: sys.stdin.read()\nos._exit(0)")
    process.wait(100)
    assert_nothing_left(servers, folders)
    process.stdin.close()  # ends the child


def test_a_paused_server_ends_too():
    process, servers, folders = owner("valkey.pause(); postgres.pause(); os._exit(1)")
    process.wait(100)
    assert_nothing_left(servers, folders)


@pytest.mark.deep
def test_a_killed_reaper_is_replaced():
    process, servers, folders = owner(
        "import psutil\n"
        "(reaper,) = [c for c in psutil.Process().children() if 'reaper.py' in ' '.join(c.cmdline())]\n"
        "reaper.kill(); reaper.wait()\n"
        "Valkey().start(); os._exit(1)"
    )
    process.wait(100)
    assert_nothing_left(servers, folders)


@pytest.mark.deep
def test_the_servers_do_not_hold_the_callers_output():
    """A caller that reads until the end of the output (`$(…)` in a shell) must not wait for the servers."""
    done = subprocess.run(
        [sys.executable, "-c", OWNER.format(then="os.kill(os.getpid(), 9)")],
        stdout=subprocess.PIPE,
        timeout=100,
    )
    assert done.returncode == -signal.SIGKILL


def test_a_killed_server_leaves_no_shared_memory_outside_of_its_folder():
    with Postgres() as postgres:
        mapped = {each.path for each in psutil.Process(postgres.pid).memory_maps()}
    assert not [path for path in mapped if path.startswith("/dev/shm/PostgreSQL")]
    assert [path for path in mapped if "pg_dynshmem" in path]
