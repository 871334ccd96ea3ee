"""Connects this process, judge or worker, to other servers, although Django and the ledger's clients have already read
their addresses.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.core.cache import caches
from django.db import connections
from environ import Env

from ledger.addresses import ADDRESS_NAMES
from ledger.config import mariadb
from ledger.resources import redis_client

WORKER_NAMES = (*ADDRESS_NAMES, "LAB_DIR")


def connect_to(env: Mapping[str, str | None]) -> None:
    """Let this process, and those that it starts, connect to `env` from now on. A value of None: no such server."""
    for name, value in env.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    redis_client.cache_clear()
    if env.keys() & {"DATABASE_URL", "MARIADB_URL"}:
        _databases()
    if "REDIS_URL" in env:
        settings.CACHES["default"]["LOCATION"] = os.environ.get("REDIS_URL", "")
        with suppress(AttributeError):  # this thread has none yet
            del caches["default"]
    settings.REDIS_NODES = [each for each in os.environ.get("REDIS_NODES", "").split(",") if each]
    settings.ZOOKEEPER_HOSTS = os.environ.get("ZOOKEEPER_HOSTS", "")


def _databases() -> None:
    connections.close_all()
    wanted: dict[str, Any] = {"default": dict(settings.DATABASES["default"])}
    if url := os.environ.get("DATABASE_URL"):
        wanted["default"] |= Env.db_url_config(url) | {"ENGINE": "django.db.backends.postgresql"}
    if url := os.environ.get("MARIADB_URL"):
        wanted["mariadb"] = mariadb.database(url)
    settings.DATABASES = wanted
    connections.settings = connections.configure_settings(wanted)
    here: Any = connections  # the stubs leave out `_connections`
    for alias in ("default", "mariadb"):
        if hasattr(here._connections, alias):
            delattr(here._connections, alias)
