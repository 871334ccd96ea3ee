"""MariaDB for the tests that ask for it: started once, migrated, and known to Django as `mariadb`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connections

import ledger.config.mariadb
from loadtest.servers import MariaDB
from lost_update_lab.embedded import mariadb


@pytest.fixture(scope="session")
def mariadb_server(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Skips with what to install when there is none. `MARIADB_URL` from outside wins."""
    if not os.environ.get("MARIADB_URL") and (reason := mariadb.available()):
        pytest.skip(reason)
    with ExitStack() as stack:
        url = os.environ.get("MARIADB_URL") or stack.enter_context(MariaDB()).url
        settings.DATABASES["mariadb"] = ledger.config.mariadb.database(url)
        connections.configure_settings(settings.DATABASES)
        with django_db_blocker.unblock():
            call_command("migrate", database="mariadb", verbosity=0)
            connections["mariadb"].close()
            yield
            if "mariadb" in connections.settings:  # the fault tests send this process to servers of their own
                connections["mariadb"].close()
        settings.DATABASES.pop("mariadb", None)


@pytest.fixture
def store(request: pytest.FixtureRequest) -> str:
    """The store of a parametrized test (`indirect=["store"]`), with its server running."""
    if request.param == "mariadb":
        request.getfixturevalue("mariadb_server")
    return request.param
