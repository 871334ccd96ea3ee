"""Fixtures for real servers. The session's own come from servers_plugin.py."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis
from django.core.management import call_command
from django.db import connections
from hypothesis import HealthCheck, settings
from redis.backoff import NoBackoff
from redis.retry import Retry

from loadtest.servers import Postgres, Valkey

# a machine that stood still for 0.2 s has found no fault of a property
settings.register_profile("lab", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("lab")

#: They are begun first, so that at the end no worker of `make test` is busy alone with one of them. Beside the faults,
#: whose verdicts are `inconclusive` on a machine that is overrun (loadtest/faults/cell.py), those that mostly wait.
LONGEST = (
    "loadtest/faults/test_faults.py",
    "contract/test_locks.py",
    "loadtest/explorer/test_literature.py",
    "lost_update_lab/test_reduction.py",
    "loadtest/servers/test_embedded.py",
    "browser/test_access.py",
    "loadtest/bench/test_bench_sql.py",
    "loadtest/bench/test_bench_locks.py",
    "browser/test_import_flow.py",
    "loadtest/swarm/test_compare.py",
    "loadtest/faults/test_lost_reply.py",
    "loadtest/trials/test_workloads_on_trial.py",
    "loadtest/explorer/test_explore_command.py",
    "loadtest/faults/test_overdue.py",
    "lost_update_lab/embedded/test_replication.py",
    "loadtest/swarm/test_background_comparison.py",
    "test_deployment.py",
    "loadtest/report/test_counterexamples.py",
    "lost_update_lab/embedded/test_owner_dies.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))


@pytest.fixture(scope="session")
def django_db_setup(django_db_blocker: Any) -> None:
    """The session's own database, migrated: no `test_…` beside it, so that child processes see what a test sees."""
    with django_db_blocker.unblock():
        call_command("migrate", verbosity=0)


@pytest.fixture
def committed_db(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """The database with real commits, seen by every thread and process. Nothing is rolled back or flushed
    (entries are append-only): a test opens a fresh book and looks at that one only."""
    with django_db_blocker.unblock():
        yield
        from ledger.writer.candidates import dismiss  # models: only once Django is set up

        dismiss()  # the single writers of this process: an idle one stays for 30 s
        connections.close_all()


@pytest.fixture(scope="session")
def redis_url() -> str:
    """The Valkey of this test session."""
    return os.environ["REDIS_URL"]


@pytest.fixture
def redis_client(redis_url: str) -> Iterator[redis.Redis]:
    """A client of the session's Valkey, emptied before the test. Bytes, and no command is ever re-sent."""
    with redis.Redis.from_url(redis_url, decode_responses=False, retry=Retry(NoBackoff(), 0)) as client:
        client.flushall()
        yield client


@pytest.fixture
def valkey_server() -> Iterator[Callable[..., Valkey]]:
    """`valkey_server(persistence="always", port=0, …)`: a started Valkey of the test's own."""
    with ExitStack() as servers:

        def start(**options: Any) -> Valkey:
            return servers.enter_context(Valkey(**options))

        yield start


@pytest.fixture
def postgres_server() -> Iterator[Callable[..., Postgres]]:
    """The same for PostgreSQL: `postgres_server(settings={"wal_level": "logical"})`."""
    with ExitStack() as servers:

        def start(**options: Any) -> Postgres:
            return servers.enter_context(Postgres(**options))

        yield start


#: what the explorer asks of PostgreSQL: it finds deadlocks itself, and its servers need not survive a crash
EXPLORED = {"deadlock_timeout": "1h", "fsync": "off", "synchronous_commit": "off"}


@pytest.fixture(scope="session")
def explorer_urls() -> Iterator[tuple[str, str]]:
    """A PostgreSQL and a Valkey that only searches use."""
    with Postgres(settings=EXPLORED) as postgres, Valkey() as valkey:
        yield postgres.url, valkey.url
