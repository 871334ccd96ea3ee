"""A private PostgreSQL and Valkey for the whole test session, there before Django reads its settings.

Loaded by `-p tests.servers_plugin` (pyproject.toml): a conftest.py would come too late, because pytest-django
imports the settings first. `DATABASE_URL` and `REDIS_URL` from outside win, each for itself. `REDIS_NODES` are
three more Valkeys for the locks that need a majority.

With `-n 3` (pytest-xdist) each worker process is a test session of its own, with servers of its own; the process that
hands out the files runs no test and has none.
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

import pytest

from ledger.addresses import BASE_DIR
from loadtest.servers import Postgres, Valkey
from lost_update_lab.embedded.reaper import REAPER

_servers = ExitStack()


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
        told = "sessions side by side would empty them under each other. Run pytest without -n (make test WORKERS=0)"
        raise pytest.UsageError(f"{' and '.join(given)} given: {told}")


def prepare() -> None:
    """What this process and its children find in their environment."""
    # Hundreds of child processes: each would compile the lab anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # Ignored in what a script starts with `&`: children inherit that, and some are to hear Ctrl-C in a test.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="lab-tests-"))
    REAPER.remove(folder)
    _servers.callback(shutil.rmtree, folder, ignore_errors=True)
    # What a test starts by `servers up` must not meet the servers of this checkout.
    os.environ["LAB_DIR"] = str(folder / "lab")
    if not os.environ.get("INITDB_TEMPLATE"):
        os.environ["INITDB_TEMPLATE"] = str(migrated(folder / "template"))


def migrated(folder: Path) -> Path:
    """A cluster with the lab's tables, for every PostgreSQL of the session to begin as: some thirty would make them."""
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
    """Also after Ctrl-C. What ends pytest without this (SIGTERM, SIGKILL) leaves it to the reaper."""
    _servers.close()
