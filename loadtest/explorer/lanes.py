"""Parallel lanes: each has its own Valkey and its own database, on one PostgreSQL without durability."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from math import inf
from multiprocessing.connection import Connection, wait
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, Self

import psycopg
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connections
from environ import Env

from loadtest.explorer import lane
from loadtest.explorer.cores import core_of, keep_to
from loadtest.explorer.left import end_sessions, end_sessions_of
from loadtest.explorer.pulse import last_words
from loadtest.findings.job import Job
from loadtest.servers import EmbeddedServer, MariaDB, Postgres, ServerError, Valkey
from lost_update_lab.embedded.base import start_together
from lost_update_lab.embedded.mariadb import EXPLORED_OPTIONS
from lost_update_lab.embedded.postgres import EXPLORED_SETTINGS

#: the explorer detects deadlocks itself, and nothing may happen in the background
SETTINGS = {
    **EXPLORED_SETTINGS,
    "deadlock_timeout": "1h",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "update_process_title": "off",
}
NODES = 3
#: the alias of the lanes' database while this process migrates it
ALIAS = "lanes"
#: seconds beyond the budget before a lane is given up: as long as the budget, within these limits
LEAST_MARGIN, MOST_MARGIN = 40.0, 120.0
#: seconds for a lane's process to start and migrate its MariaDB. They are no part of the first job's budget: on a slow
#: machine they took longer than that, and each lane was given up before it had begun
STARTS_WITHIN = 600.0


class Lanes:
    """`count` processes, as a context manager. `explore(jobs)` yields (job, answer) as they arrive."""

    def __init__(self, count: int, mariadb: bool = False) -> None:
        self.count, self.mariadb = count, mariadb
        self._stack = ExitStack()
        self._lanes: list[_Lane] = []

    def __enter__(self) -> Self:
        """The servers start side by side, while the lanes' processes load Django. `explore --strategy no-lock` takes
        0.86 of the time so."""
        try:
            postgres = Postgres(settings=SETTINGS)
            for number in range(self.count):
                self._lanes.append(_Lane(postgres, number, self._stack, self.mariadb))
            servers = [postgres, *(server for each in self._lanes for server in each.servers)]
            for server in servers:
                self._stack.callback(server.close)
                if isinstance(server, Valkey):  # a lock may have kept it busy for ever, and it would not stop
                    self._stack.callback(server.kill)
            start_together(servers)
            _migrate(postgres.url)
            for each in self._lanes:
                each.open()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._lanes:
            each.end()
        self._stack.close()

    def explore(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, dict[str, Any]]]:
        rest = list(jobs)
        busy: dict[Any, _Lane] = {}
        idle = list(self._lanes)
        while rest or busy:
            while rest and idle:
                each = idle.pop()
                each.begin(rest.pop(0))
                busy[each.pipe] = each
            soonest = min(each.until for each in busy.values())
            wait(list(busy), None if soonest == inf else max(0.0, soonest - monotonic()))
            for pipe, each in list(busy.items()):
                if each.became_ready():
                    continue
                if pipe.poll() or monotonic() > each.until:
                    del busy[pipe]
                    assert each.job is not None
                    yield each.job, each.answer()
                    idle.append(each)


class _Lane:
    """The addresses of its servers are known before they run, so its process can begin."""

    def __init__(self, postgres: Postgres, number: int, stack: ExitStack, mariadb: bool) -> None:
        self.database, self.admin = f"lane_{number}", postgres.url.replace("/lab?", "/postgres?")
        primary = Valkey(port=0)  # replicas, for locks that need one, connect by TCP
        nodes = [Valkey() for _ in range(NODES)]
        self.valkeys = primary, *nodes
        self.core = core_of(number)
        self.environment = {
            "DJANGO_SETTINGS_MODULE": "ledger.settings",
            "DATABASE_URL": postgres.url.replace("/lab?", f"/{self.database}?"),
            "REDIS_URL": primary.url,
            "REDIS_PORT": str(primary.port),
            "REDIS_NODES": ",".join(node.url for node in nodes),
        }
        self.mariadb = MariaDB(settings=EXPLORED_OPTIONS) if mariadb else None
        if self.mariadb:
            self.environment["MARIADB_URL"] = self.mariadb.url
        self.job: Job | None = None
        self.until = inf
        #: its process writes there where it was last
        self.last = str(Path(stack.enter_context(TemporaryDirectory()), "last"))
        self._start()

    @property
    def servers(self) -> tuple[EmbeddedServer, ...]:
        return *self.valkeys, *([self.mariadb] if self.mariadb else [])

    def open(self) -> None:
        """Its servers run, and the database that its own is a copy of is migrated."""
        with psycopg.connect(self.admin, autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {self.database} TEMPLATE lab")
        self._go_on()

    def _go_on(self) -> None:
        keep_to(self.core, [server.pid for server in self.servers])
        self.pipe.send(lane.OPEN)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=lane.main, args=(theirs, self.environment, sys.path, self.core, self.last), daemon=True
        )
        self.process.start()
        theirs.close()
        self.ready = False

    def _start_anew(self) -> None:
        """Something hangs there. A server that is busy for ever would answer the next job as little as this one, and a
        session that is left keeps its locks."""
        end_sessions(self.admin, self.database)
        if self.mariadb:
            end_sessions_of(self.mariadb)
        for server in self.valkeys:
            server.kill()
            server.start()
        self._start()
        self._go_on()

    def begin(self, job: Job) -> None:
        self.job = job
        self.until = self._deadline() if self.ready else monotonic() + STARTS_WITHIN
        self.pipe.send(job)

    def _deadline(self) -> float:
        budget = self.job.budget if self.job else None
        return monotonic() + budget + _margin(budget) if budget else inf

    def became_ready(self) -> bool:
        """Has the process just said that it is ready? The job's budget begins then."""
        if self.ready or not self.pipe.poll():
            return False
        try:
            self.ready = self.pipe.recv() == lane.READY
        except (EOFError, OSError):
            return False  # it has ended: `answer` says so
        self.until = self._deadline()
        return self.ready

    def answer(self) -> dict[str, Any]:
        """Return the process's answer. A process that died or is overdue is replaced."""
        if not self.pipe.poll():
            late = _margin(self.job.budget or 0) if self.job else 0
            told = f"no answer {late:g} s after its budget had ended"
            told = told if self.ready else f"its process was not ready after {STARTS_WITHIN:g} s"
            self.end()
            self._start_anew()
            return {"error": told, "environment": {}}
        try:
            answer: dict[str, Any] = self.pipe.recv()
            if answer.pop("last", False):
                self.end()
                self._start_anew()
        except (EOFError, OSError):
            self.end()
            answer = {"error": f"its process ended with code {self.process.exitcode}", "environment": {}}
            answer |= last_words(self.last)
            self._start_anew()
        return answer

    def end(self) -> None:
        pipe: Connection = self.pipe
        pipe.close()
        if self.process.is_alive():
            self.process.terminate()
        self.process.join(10)


def _margin(budget: float) -> float:
    return min(max(budget, LEAST_MARGIN), MOST_MARGIN)


def _migrate(url: str) -> None:
    """Migrate in this process, where Django is loaded. A new process would take a second to load it."""
    of_ours = connections.settings["default"]
    address = {**Env.db_url_config(url), "ENGINE": "django.db.backends.postgresql"}
    connections.settings[ALIAS] = {**of_ours, **address}
    try:
        call_command("migrate", verbosity=0, database=ALIAS)
    except (DatabaseError, CommandError) as error:
        raise ServerError(f"migrate failed: {error}") from error
    finally:
        connections[ALIAS].close()
        del connections[ALIAS], connections.settings[ALIAS]
