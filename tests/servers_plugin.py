"""A private PostgreSQL and Valkey for the whole test session, ready before Django reads its settings.

Loaded by `-p tests.servers_plugin` (pyproject.toml). A conftest.py would be too late: pytest-django imports the
settings before it. `DATABASE_URL` and `REDIS_URL` in the environment win, each for itself. `REDIS_NODES` are three more
Valkeys, for the locks that need a majority.

With `-n 4` (pytest-xdist) each worker process is a test session with servers of its own. The process that hands out the
files runs no test and starts no server.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from ledger.addresses import BASE_DIR
from loadtest.servers import Postgres, Valkey
from lost_update_lab.embedded.reaper import REAPER

_servers = ExitStack()
#: a folder in memory, and what must be free there (docs/decisions/0016)
MEMORY = "/dev/shm"
ROOM = 8 * 2**30


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, Any, Any]:
    options = early_config.known_args_namespace
    asks_only = options.help or options.version
    hands_out = getattr(options, "numprocesses", 0) and "PYTEST_XDIST_WORKER" not in os.environ
    try:
        if hands_out:
            refuse_shared_servers()
        if not asks_only:
            prepare()
        if not asks_only and not hands_out:
            start_servers()
    except BaseException:
        _servers.close()
        raise
    return (yield)


def refuse_shared_servers() -> None:
    if given := [name for name in ("DATABASE_URL", "REDIS_URL") if os.environ.get(name)]:
        told = (
            "sessions side by side would empty each other's data. Run pytest without -n (make test WORKERS=0)"
        )
        raise pytest.UsageError(f"{' and '.join(given)} given: {told}")


def prepare() -> None:
    """Set up the environment that this process and its children see."""
    # The tests start hundreds of processes. Without compiled files each of them would compile the lab again.
    # So would each session, and rewrite the assertions of every test.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    # A script that is started with `&` ignores Ctrl-C, and its children inherit that. Some tests send it to a child.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if "TMPDIR" not in os.environ and has_room(MEMORY):
        os.environ["TMPDIR"], tempfile.tempdir = MEMORY, None
    folder = Path(tempfile.mkdtemp(prefix="lab-tests-"))
    REAPER.remove(folder)
    _servers.callback(shutil.rmtree, folder, ignore_errors=True)
    # A test that runs `servers up` must not find the servers of this checkout.
    os.environ["LAB_DIR"] = str(folder / "lab")
    if not os.environ.get("INITDB_TEMPLATE"):
        os.environ["INITDB_TEMPLATE"] = str(migrated(folder / "template"))


def has_room(folder: str) -> bool:
    """Is it in memory, and is there enough of that for what the sessions of `make test` have at a time?"""
    try:
        free = shutil.disk_usage(folder).free
    except OSError:  # no Linux
        return False
    return os.access(folder, os.W_OK) and min(free, psutil.virtual_memory().available) > ROOM


def migrated(folder: Path) -> Path:
    """Make a cluster with the lab's tables. Each PostgreSQL of the session, about thirty of them, begins as a copy."""
    with Postgres(folder) as postgres:
        environment = {**os.environ, "DATABASE_URL": postgres.url}
        command = [sys.executable, "manage.py", "migrate", "--skip-checks", "--verbosity=0"]
        subprocess.run(command, cwd=BASE_DIR, env=environment, stdin=subprocess.DEVNULL, check=True)
    return folder


def start_servers() -> None:
    if not os.environ.get("DATABASE_URL"):
        os.environ["DATABASE_URL"] = _servers.enter_context(Postgres()).url
    if not os.environ.get("REDIS_URL"):
        first, *nodes = [_servers.enter_context(Valkey()).url for _ in range(4)]
        os.environ["REDIS_URL"] = first
        os.environ.setdefault("REDIS_NODES", ",".join(nodes))


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Runs after Ctrl-C too. After SIGTERM and SIGKILL, which skip it, the reaper ends the servers."""
    _servers.close()
