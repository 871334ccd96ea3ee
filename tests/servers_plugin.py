"""A private PostgreSQL and Valkey for the whole test session, there before Django reads its settings.

Loaded by `-p tests.servers_plugin` (pyproject.toml): a conftest.py would come too late, because pytest-django
imports the settings first. `DATABASE_URL` and `REDIS_URL` from outside win, each for itself.
"""

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import ExitStack
from typing import Any

import pytest

from loadtest.servers import Postgres, Valkey
from loadtest.servers.reaper import REAPER

_servers = ExitStack()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, Any, Any]:
    asks_only = any(early_config.known_args_namespace.__dict__.get(name) for name in ("help", "version"))
    if not asks_only:
        start_servers()
    return (yield)


def start_servers() -> None:
    try:
        for variable, server in (("DATABASE_URL", Postgres), ("REDIS_URL", Valkey)):
            if not os.environ.get(variable):
                os.environ[variable] = _servers.enter_context(server()).url
    except BaseException:
        _servers.close()
        raise
    # What a test starts by `servers up` must not meet the servers of this checkout.
    folder = os.environ["LAB_DIR"] = tempfile.mkdtemp(prefix="lab-tests-")
    REAPER.remove(folder)
    _servers.callback(shutil.rmtree, folder, ignore_errors=True)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Also after Ctrl-C. What ends pytest without this (SIGTERM, SIGKILL) leaves it to the reaper."""
    _servers.close()
