"""Django loads `DatabaseWrapper` from here; connecting says which command starts a server."""

from __future__ import annotations

from typing import Any, NoReturn

from django.db.backends.postgresql.base import DatabaseWrapper as PostgreSQL

from ledger.addresses import REMEDY, NoServers


class DatabaseWrapper(PostgreSQL):
    """PostgreSQL's dialect without a server."""

    def get_connection_params(self) -> dict[str, Any]:
        return {}

    def get_new_connection(self, conn_params: dict[str, Any]) -> NoReturn:
        raise NoServers(REMEDY.format(name="DATABASE_URL"))
