"""PgBouncer from Debian's package `pgbouncer`, as a child process: a pooler in transaction mode before a PostgreSQL."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import psycopg

from lost_update_lab.embedded.base import EmbeddedServer, Unavailable
from lost_update_lab.embedded.mariadb import PLACES
from lost_update_lab.embedded.postgres import Postgres, not_as_root


def available() -> str | None:
    """Return None if PgBouncer can be started here, or the reason why not."""
    return None if shutil.which("pgbouncer", path=PLACES) else "install pgbouncer"


class PgBouncer(EmbeddedServer):
    """A pooler on a unix socket. Each transaction gets a session of `postgres`, the one that was free last. All other
    settings are PgBouncer's own."""

    name = "pgbouncer"

    def __init__(self, postgres: Postgres, data: Path | str | None = None) -> None:
        if reason := available():
            raise Unavailable(reason)
        super().__init__(data)
        self.postgres = postgres

    @property
    def url(self) -> str:
        """The address, for Django. The option is Django's own word for a pooler in transaction mode."""
        return f"postgresql://lab@/lab?host={self.run}&DISABLE_SERVER_SIDE_CURSORS=True"

    def prepare(self) -> None:
        super().prepare()
        lines = [
            "[databases]",
            f"lab = host={self.postgres.run} dbname=lab user=lab",
            "[pgbouncer]",
            "pool_mode = transaction",
            f"unix_socket_dir = {self.run}",
            "listen_port = 5432",
            "auth_type = any",
            "max_client_conn = 1000",
            "default_pool_size = 100",
            "ignore_startup_parameters = extra_float_digits",
        ]
        (self.run / "pgbouncer.ini").write_text("\n".join(lines) + "\n")

    def command(self) -> list[str]:
        program = shutil.which("pgbouncer", path=PLACES) or "pgbouncer"
        return not_as_root([program, "-q", str(self.run / "pgbouncer.ini")])

    def answers(self) -> bool:
        return bool(self.show("POOLS"))

    def show(self, what: str) -> list[dict[str, Any]]:
        """Return what its console says: `SHOW CLIENTS`, `SHOW SERVERS` …"""
        with psycopg.connect(
            host=str(self.run), dbname="pgbouncer", user="lab", autocommit=True, connect_timeout=2
        ) as console:
            found = console.pgconn.exec_(f"SHOW {what}".encode())  # the console knows no other protocol
            if found.error_message:
                raise psycopg.OperationalError(found.error_message.decode())
            names = [(found.fname(column) or b"").decode() for column in range(found.nfields)]
            return [
                {name: (found.get_value(row, n) or b"").decode() for n, name in enumerate(names)}
                for row in range(found.ntuples)
            ]

    def session_of(self, client: int) -> int | None:
        """Return the PostgreSQL session that the client process with this pid has now. None: it has none."""
        linked = [each["link"] for each in self.show("CLIENTS") if each["remote_pid"] == str(client)]
        return next((int(each["remote_pid"]) for each in self.show("SERVERS") if each["ptr"] in linked), None)

    def transactions(self) -> int:
        """Return how many transactions it has passed on."""
        return sum(int(each["xact_count"]) for each in self.show("STATS_TOTALS") if each["database"] == "lab")

    def mode(self) -> str:
        return str(next(each["pool_mode"] for each in self.show("POOLS") if each["database"] == "lab"))
