"""Fixtures with real servers. servers_plugin.py starts those of the session itself."""

import gc
import logging
import os
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis
from django.conf import settings as django_settings
from django.core.management import call_command
from django.db import connections
from hypothesis import HealthCheck, settings
from redis.backoff import NoBackoff
from redis.retry import Retry

import ledger.config.mariadb
from loadtest.servers import MariaDB, Postgres, Valkey
from locks.renewal_service import RenewalServiceLock
from lost_update_lab.embedded import mariadb
from lost_update_lab.embedded.postgres import EXPLORED_SETTINGS
from lost_update_lab.runs import garbage

# no deadline: a machine that stands still for 0.2 s says nothing about a property
settings.register_profile("lab", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("lab")

#: These files take longest (13 s and more, alone), so they begin first: otherwise one worker of `make test` would still
#: be busy with one of them when the others have ended. The faults lead, because their verdict is `inconclusive` on a
#: machine that is overrun (loadtest/faults/cell.py). test_held.py walks over all objects, which are few at first.
LONGEST = (
    "loadtest/faults/test_faults.py",
    "contract/test_locks.py",
    "loadtest/trials/test_workloads_on_trial.py",
    "lost_update_lab/test_one_machine.py",
    "lost_update_lab/test_held.py",
    "loadtest/bench/test_bench_locks.py",
    "loadtest/bench/test_bench_sql.py",
    "browser",
    "loadtest/servers/test_embedded.py",
    "test_deployment.py",
    "loadtest/bench/test_bench_cases.py",
    "loadtest/faults/test_overdue.py",
    "loadtest/background/test_swarms.py",
    "ledger/test_health.py",
    "locks/test_fair_lock_queue.py",
    "locks/test_fair_lock_cluster.py",
    "lost_update_lab/embedded/test_owner_dies.py",
    "loadtest/faults/test_lost_reply.py",
    "loadtest/explorer/test_literature.py",
    "lost_update_lab/test_fault_order.py",
    "lost_update_lab/test_search.py",
    "loadtest/explorer/test_explore_command.py",
    "loadtest/swarm/test_locustfile.py",
    "loadtest/servers/test_debian_packages.py",
    "ledger/test_slow_clients.py",
    "ledger/test_single_writer.py",
    "loadtest/servers/test_supervisor.py",
    "site/test_permissions.py",
    "test_package.py",
    "museum/test_trial.py",
    "museum/test_cases.py",
    "test_deep.py",
    "test_your_own_code.py",
)


class _Loggers(dict[str, Any]):
    """The loggers of this process, walked over as a copy. pytest (9.2) walks over them as each test begins and ends,
    and a thread that a test has left may make one meanwhile, as redis-py does when it connects: "dictionary changed
    size during iteration"."""

    def values(self) -> Any:
        return list(super().values())


def pytest_configure() -> None:
    logging.Logger.manager.loggerDict = _Loggers(logging.Logger.manager.loggerDict)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path, rank.get(item.path.parent, len(rank))))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadfile`, hand out tests/browser as if it were one file: it has one server and one browser."""
    from xdist.scheduler import LoadFileScheduling

    class FolderScheduling(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return "browser" if "/browser/" in nodeid else str(super()._split_scope(nodeid))

    return FolderScheduling(config, log) if config.getoption("dist") == "loadfile" else None


_stays = ExitStack()
#: how many objects there were when all had been looked at last
_looked_at = [0]
#: … so many times as many may be before all are looked at again
ROOM = 1.5


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """What the collection makes lives as long as the session. The garbage collector need not walk over it, neither
    now (a tenth of the time that the collection takes) nor in each search that looks for connections (13 % of the CPU
    time of the engine's tests)."""
    with garbage.not_now():
        made = yield
    gc.collect()
    _stays.enter_context(garbage.frozen())
    _looked_at[0] = garbage.held_in_memory()
    return made


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """A search freezes what exists, and while the collection is frozen nobody thaws it: what searches left behind
    would be walked over by each later one that asks who holds a clock."""
    is_last = nextitem is None or nextitem.path != item.path
    if is_last and garbage.held_in_memory() > ROOM * _looked_at[0]:
        garbage.collect_all_beyond(0)
        _looked_at[0] = garbage.held_in_memory()


@pytest.fixture(scope="session")
def django_db_setup(django_db_blocker: Any) -> None:
    """Migrate the session's own database. There is no second one called `test_…`: child processes see what a test
    sees."""
    with django_db_blocker.unblock():
        call_command("migrate", verbosity=0)


@pytest.fixture
def committed_db(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """The database with real commits, which every thread and process sees. Nothing is rolled back or flushed, because
    entries are append-only: a test opens a book of its own and looks at that one only."""
    with django_db_blocker.unblock():
        yield
        from ledger.writer.candidates import (
            dismiss,  # not above: it imports models, and Django must be set up first
        )

        dismiss()  # end this process's single writers, which would idle for 30 s
        RenewalServiceLock.end_services()  # … and its renewals, whose commands a search would take for a bypass
        connections.close_all()


@pytest.fixture
def empty_queue(committed_db: None) -> None:
    """No job that another test left waits for a background worker: it might run a whole command."""
    with connections["default"].cursor() as cursor:
        cursor.execute("UPDATE procrastinate_jobs SET status = 'cancelled' WHERE status = 'todo'")


@pytest.fixture(scope="session")
def redis_url() -> str:
    """The address of this test session's Valkey."""
    return os.environ["REDIS_URL"]


@pytest.fixture
def redis_client(redis_url: str) -> Iterator[redis.Redis]:
    """A client of the session's Valkey, which is emptied before the test. It returns bytes and never re-sends a
    command."""
    with redis.Redis.from_url(redis_url, decode_responses=False, retry=Retry(NoBackoff(), 0)) as client:
        client.flushall()
        yield client


@pytest.fixture
def valkey_server() -> Iterator[Callable[..., Valkey]]:
    """`valkey_server(persistence="always", port=0, …)` starts a Valkey that only this test uses."""
    with ExitStack() as servers:

        def start(**options: Any) -> Valkey:
            return servers.enter_context(Valkey(**options))

        yield start


@pytest.fixture
def postgres_server() -> Iterator[Callable[..., Postgres]]:
    """`postgres_server(settings={"wal_level": "logical"})` starts a PostgreSQL that only this test uses."""
    with ExitStack() as servers:

        def start(**options: Any) -> Postgres:
            return servers.enter_context(Postgres(**options))

        yield start


#: the explorer finds deadlocks itself
EXPLORED = {**EXPLORED_SETTINGS, "deadlock_timeout": "1h"}


@pytest.fixture(scope="session")
def explorer_urls() -> Iterator[tuple[str, str]]:
    """A PostgreSQL and a Valkey that only searches use."""
    with Postgres(settings=EXPLORED) as postgres, Valkey() as valkey:
        yield postgres.url, valkey.url


@pytest.fixture(scope="session")
def mariadb_server(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Skips with what to install when there is none. `MARIADB_URL` from outside wins."""
    if not os.environ.get("MARIADB_URL") and (reason := mariadb.available()):
        pytest.skip(reason)
    with ExitStack() as stack:
        url = os.environ.get("MARIADB_URL") or stack.enter_context(MariaDB()).url
        django_settings.DATABASES["mariadb"] = ledger.config.mariadb.database(url)
        connections.configure_settings(django_settings.DATABASES)
        with django_db_blocker.unblock():
            call_command("migrate", database="mariadb", verbosity=0)
            connections["mariadb"].close()
            yield
            if "mariadb" in connections.settings:  # the fault tests send this process to servers of their own
                connections["mariadb"].close()
        django_settings.DATABASES.pop("mariadb", None)


@pytest.fixture
def store(request: pytest.FixtureRequest) -> str:
    """The store of a parametrized test (`indirect=["store"]`), with its server running."""
    if request.param == "mariadb":
        request.getfixturevalue("mariadb_server")
    return request.param


@pytest.fixture(scope="session")
def scenario_servers(explorer_urls: tuple[str, str]) -> tuple[str, str]:
    """The same servers, and a database in which only scenarios make their tables."""
    database, redis_url = explorer_urls
    with psycopg.connect(database, autocommit=True) as link:
        link.execute("CREATE DATABASE scenarios")
    return database.replace("/lab?", "/scenarios?"), redis_url


@pytest.fixture
def scenario_urls(scenario_servers: tuple[str, str]) -> tuple[str, str]:
    """The same, with an empty Valkey: searches of other tests leave the keys of their locks there."""
    with redis.Redis.from_url(scenario_servers[1]) as keys:
        keys.flushdb()
    return scenario_servers
