"""MariaDB from Debian's package `mariadb-server`, as a child process. The package's service is not used."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Self

import pymysql

from lost_update_lab.embedded.base import EmbeddedServer, ServerError, Unavailable

#: Debian installs servers in sbin, which is not on a normal user's PATH
PLACES = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])

#: for a server that only the explorer uses. No crash of the server is explored, so its writes need not reach the disk.
#: Nothing may be decided in the background. Tables lie in one file, which makes emptying them four times as fast
EXPLORED_OPTIONS = {
    "innodb-flush-log-at-trx-commit": 0,
    "innodb-doublewrite": "OFF",
    "innodb-file-per-table": "OFF",
    "innodb-stats-persistent": "OFF",
    "innodb-stats-auto-recalc": "OFF",
    "innodb-buffer-pool-size": "32M",
    "innodb-log-file-size": "16M",
    "sysdate-is-now": "ON",
}


def available() -> str | None:
    """Return None if MariaDB can be started here, else the reason."""
    found = all(shutil.which(name, path=PLACES) for name in ("mariadbd", "mariadb-install-db"))
    return None if found else "install mariadb-server"


class MariaDB(EmbeddedServer):
    """A server on a unix socket, with a database `lab` and a user `lab` who may do everything.

    `settings` are further options, such as {"innodb-snapshot-isolation": "ON"}. Each commit is flushed to disk.
    """

    name = "mariadb"
    start_timeout = 60.0

    def __init__(self, data: Path | str | None = None, *, settings: dict[str, Any] | None = None) -> None:
        if reason := available():
            raise Unavailable(reason)
        super().__init__(data)
        self.socket = self.run / "mariadb.sock"
        #: its own: a server that starts removes the temporary tables that it finds in the folder, whosever they are
        self.tmpdir = self.run / "tmp"
        self.settings = {
            "datadir": self.data,
            "socket": self.socket,
            "pid-file": self.run / "mariadb.pid",
            "tmpdir": self.tmpdir,
            "skip-networking": "ON",
            "max-connections": 200,
            "character-set-server": "utf8mb4",
            "innodb-flush-log-at-trx-commit": 1,
            **(settings or {}),
        }

    @property
    def url(self) -> str:
        """For django-environ."""
        return f"mysql://lab@/lab?unix_socket={self.socket}"

    def prepare(self) -> None:
        self.tmpdir.mkdir(parents=True, exist_ok=True)
        if not (self.data / "mysql").exists():
            self._install()

    def command(self) -> list[str]:
        options = [f"--{key}={value}" for key, value in self.settings.items()]
        return [_program("mariadbd"), "--no-defaults", *options, *_as_root()]

    def start(self) -> Self:
        super().start()
        with self.connect(user="root", database=None) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE IF NOT EXISTS lab")
            cursor.execute("CREATE USER IF NOT EXISTS lab@localhost")
            cursor.execute("GRANT ALL ON *.* TO lab@localhost WITH GRANT OPTION")
        return self

    def answers(self) -> bool:
        self.connect(user="root", database=None).close()
        return True

    def connect(self, **options: Any) -> pymysql.Connection[Any]:
        """Open a PyMySQL connection to the database `lab`."""
        given: dict[str, Any] = {"unix_socket": str(self.socket), "user": "lab", "database": "lab"}
        made: pymysql.Connection[Any] = pymysql.connect(**given | {"ssl_disabled": True} | options)
        return made

    def _install(self) -> None:
        """Install into a folder beside `data` and rename it: an installation that is killed leaves no half data."""
        half = self.data.with_name(self.data.name + ".new")
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir(parents=True, mode=0o700)
        done = subprocess.run(
            [
                _program("mariadb-install-db"),
                "--no-defaults",
                f"--datadir={half}",
                # The socket's folder is private (0700), so a user who reaches the socket may be root in it.
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                *_as_root(),
            ],
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd="/",
            env={**os.environ, "TMPDIR": str(self.tmpdir)},
        )
        if done.returncode != 0:
            raise ServerError(f"mariadb-install-db failed ({done.returncode}):\n{done.stdout}{done.stderr}")
        if self.data.exists():
            self.data.rmdir()  # raises if it is not empty: its files are not ours to delete
        half.rename(self.data)


def _program(name: str) -> str:
    return shutil.which(name, path=PLACES) or name


def _as_root() -> list[str]:
    return ["--user=root"] if os.geteuid() == 0 else []
