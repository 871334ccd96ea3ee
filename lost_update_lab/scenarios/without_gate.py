"""Client libraries that have no gate, and what to use in their place."""

from __future__ import annotations

import sys

_PYMYSQL = "PyMySQL"
_IN_DJANGO = "PyMySQL (Django: `import pymysql; pymysql.install_as_MySQLdb()` before the settings are read)"
#: the module of each → its name, and what has a gate
_CLIENTS = {
    "MySQLdb._mysql": ("mysqlclient", _IN_DJANGO),
    "asyncmy": ("asyncmy", "aiomysql"),
    "mysql.connector": ("MySQL Connector", _PYMYSQL),
    "mariadb": ("MariaDB Connector", _PYMYSQL),
    "psycopg2": ("psycopg2", "psycopg 3"),
    "asyncpg": ("asyncpg", "psycopg's AsyncConnection"),
    "pg8000": ("pg8000", "psycopg 3"),
    "valkey": ("valkey-py", "redis-py"),
    "coredis": ("coredis", "redis.asyncio"),
    "glide": ("GLIDE", "redis-py"),
}


def instead(remedy: str) -> str:
    """The remedy for a client that has no gate. Of those that are imported here, it says what to use in their place."""
    found = [
        f"{name} has no gate: use {other}"
        for module, (name, other) in _CLIENTS.items()
        if module in sys.modules
    ]
    return "; ".join([*found, *[f"or {remedy}" if found else remedy]])
