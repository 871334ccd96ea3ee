"""MariaDB for Django: the alias `mariadb`, through PyMySQL. It stands in for the MySQL of the articles."""

from __future__ import annotations

from typing import Any

import environ
import pymysql


def database(url: str) -> dict[str, Any]:
    """Return the entry of Django's DATABASES for `url`, e.g. mysql://lab@127.0.0.1/lab."""
    pymysql.install_as_MySQLdb()  # Django's backend asks for mysqlclient, which needs a compiler to install
    found = environ.Env.db_url_config(url)
    if "unix_socket" in found.get("OPTIONS", {}):  # PyMySQL would read all certificates for each connection
        found["OPTIONS"].setdefault("ssl_disabled", True)
    return {**found, "CONN_MAX_AGE": 600, "CONN_HEALTH_CHECKS": True}
