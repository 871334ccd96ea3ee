"""Is the code on trial that of a Django project? It need not be said where it shows."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

HINT = (
    ". Django is configured here, and its database is another one: to use that, say explore(…, django=True), or mark "
    "the test with @pytest.mark.django_db(transaction=True)"
)
_VENDORS = ("postgresql", "mysql")


def is_configured() -> bool:
    """Has this process called django.setup()?"""
    conf, apps = sys.modules.get("django.conf"), sys.modules.get("django.apps")
    return bool(conf and apps and conf.settings.configured and apps.apps.ready)


def project_of(django: bool | None, database: str = "") -> dict[str, Any]:
    """What is to be known of the Django project of this process (django_project.py). {}: it is not on trial. `django`
    None: it is if it is configured, unless `database` is another one. A test says so by its mark. Raises Mistake."""
    if django is False or (django is None and not _shows(database)):
        return {}
    bound: dict[str, Any] = import_module("lost_update_lab.under_test.django_project").bound()
    return bound


def _shows(database: str) -> bool:
    of_pytest = "pytest" in sys.modules and "PYTEST_CURRENT_TEST" in os.environ
    if not is_configured() or of_pytest:
        return False
    connection = import_module("django.db").connection
    if not database:
        return connection.vendor in _VENDORS
    given: dict[str, Any] = {}
    with suppress(ProgrammingError):  # it is no address, or not that of a PostgreSQL
        given = conninfo_to_dict(database)
    of_django = connection.get_connection_params() if connection.vendor == "postgresql" else {}
    where = ("dbname", "host", "port")
    return bool(of_django) and all(str(of_django.get(n) or "") == str(given.get(n) or "") for n in where)
