"""Where a result was measured: versions, cores, commit. Every JSON file includes it."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection, connections

from ledger.resources import redis_client
from loadtest.trials.machine import machine

#: seconds to wait for a server that is optional
PATIENCE = 2.0


def environment() -> dict[str, Any]:
    """Return `versions`, `cores`, `machine` and `commit` (None outside a checkout)."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        postgres = cursor.fetchone()
    info = redis_client().info("server")
    name = "valkey" if "valkey_version" in info else "redis"
    servers = {"postgresql": str(postgres[0]), name: str(info[f"{name}_version"])}
    return machine(servers | dict(_optional()))


def _optional() -> Iterator[tuple[str, str]]:
    """Yield the versions of MariaDB and ZooKeeper, if there are any. If one does not answer, the cases that do not need
    it still run. A case that needs it says so."""
    if "mariadb" in settings.DATABASES:
        try:
            with connections["mariadb"].cursor() as cursor:
                cursor.execute("SELECT VERSION()")
                yield "mariadb", str(cursor.fetchone()[0]).partition("-")[0]
        except DatabaseError:
            pass
    if settings.ZOOKEEPER_HOSTS and (found := zookeeper_version(settings.ZOOKEEPER_HOSTS)):
        yield "zookeeper", found


def zookeeper_version(hosts: str) -> str:
    """Return the version of the first of `hosts` (as kazoo takes them) that reports one, or ""."""
    for each in hosts.partition("/")[0].split(","):
        host, _, port = each.strip().rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), PATIENCE) as asked:
                asked.sendall(b"srvr")
                told = asked.makefile("rb").readline().decode(errors="replace")
        except (OSError, ValueError):
            continue
        if found := re.match(r"Zookeeper version: (\d+(?:\.\d+)*)", told):
            return found[1]
    return ""
