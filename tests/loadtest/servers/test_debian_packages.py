"""MariaDB, ZooKeeper and PgBouncer from Debian's packages; without them, the reason that says what to install."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import psycopg
import pymysql
import pytest
from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError

from ledger.addresses import BASE_DIR
from loadtest.faults.cell import Cell
from loadtest.faults.hazards import ADVERSARIES
from loadtest.servers import (
    MariaDB,
    PgBouncer,
    Postgres,
    Unavailable,
    ZooKeeper,
    embedded,
    pgbouncer,
    zookeeper,
)
from lost_update_lab.embedded import mariadb

needs_mariadb = pytest.mark.skipif(bool(mariadb.available()), reason=f"{mariadb.available()}")
needs_zookeeper = pytest.mark.skipif(bool(zookeeper.available()), reason=f"{zookeeper.available()}")
needs_pgbouncer = pytest.mark.skipif(bool(pgbouncer.available()), reason=f"{pgbouncer.available()}")


@needs_mariadb
def test_mariadb_keeps_a_commit_over_a_kill():
    with MariaDB() as server:
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT @@innodb_flush_log_at_trx_commit, @@innodb_snapshot_isolation")
            assert cursor.fetchone() == (1, 0)
            cursor.execute("CREATE TABLE t (n INT) ENGINE=InnoDB")
            cursor.execute("INSERT INTO t VALUES (42)")
            connection.commit()
        server.kill()
        with pytest.raises(pymysql.OperationalError):
            server.connect()
        server.start()
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT n FROM t")
            assert cursor.fetchone() == (42,)
        process, folder = psutil.Process(server.pid), server.run
    assert not process.is_running()
    assert not folder.exists()


def _dies_holding(url: str, node: str) -> None:
    """A process that creates it for its session, and ends without a word."""
    code = (
        "import os, sys; from kazoo.client import KazooClient; client = KazooClient(sys.argv[1], timeout=4.0);"
        "client.start(); client.create(sys.argv[2], ephemeral=True); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, url, node], check=True)


@pytest.mark.deep
@needs_zookeeper
def test_zookeeper_ends_a_session_and_keeps_its_data_over_a_kill():
    with ZooKeeper() as server:
        quick = KazooClient(server.url, timeout=0.4)
        quick.start()
        assert quick._session_timeout == 400  # the server granted what was asked for
        quick.stop()
        quick.close()
        client = KazooClient(server.url, timeout=10.0)
        client.start()
        client.create("/kept", b"v")
        _dies_holding(server.url, "/lock")
        assert client.exists("/lock")
        deadline = time.monotonic() + 60
        while client.exists("/lock"):
            assert time.monotonic() < deadline, "its session ends"
            time.sleep(0.02)
        client.create("/lock", ephemeral=True)
        client.stop()
        server.kill()
        with pytest.raises(KazooTimeoutError):
            KazooClient(server.url).start(timeout=0.3)
        server.start()
        client.start()
        assert client.get("/kept")[0] == b"v"
        assert client.exists("/lock") is None
        client.stop()
        client.close()


def _asks(client: psycopg.Connection[tuple[int]]) -> int:
    return client.execute("SELECT pg_backend_pid()").fetchone()[0]


@needs_pgbouncer
def test_pgbouncer_gives_a_session_to_a_transaction_and_to_nobody_between():
    with Postgres() as postgres, PgBouncer(postgres) as pooler:
        address = {"host": str(pooler.run), "dbname": "lab", "user": "lab", "autocommit": True}
        with psycopg.connect(**address) as ann, psycopg.connect(**address) as bob:
            assert _asks(ann) == _asks(bob)  # in turns
            assert pooler.session_of(os.getpid()) is None
            with ann.transaction():
                session = _asks(ann)
                assert pooler.session_of(os.getpid()) == session != _asks(bob)
            assert pooler.session_of(os.getpid()) is None
        assert (pooler.transactions(), pooler.mode()) == (4, "transaction")
        process = psutil.Process(pooler.pid)
    assert not process.is_running()


def test_without_the_packages_the_reason_says_what_to_install(monkeypatch):
    monkeypatch.setattr(mariadb, "PLACES", "/nowhere")
    monkeypatch.setattr(pgbouncer, "PLACES", "/nowhere")
    monkeypatch.setattr(zookeeper, "JAR", Path("/nowhere/zookeeper.jar"))
    cell = Cell("advisory-lock-session", ADVERSARIES["transaction-pooler"])
    assert cell.lacks() == ("no PgBouncer: install pgbouncer", "apt-get install pgbouncer")
    for server, package in ((MariaDB, "install mariadb-server"), (ZooKeeper, "install zookeeper")):
        with pytest.raises(Unavailable, match=package):
            server()
    monkeypatch.delenv("MARIADB_URL", raising=False)
    with pytest.raises(Unavailable, match="install mariadb-server"), embedded.using("mariadb"):
        pass


def _versions(addresses: dict[str, str]) -> dict[str, str]:
    """What a process that is told these addresses writes into its JSON."""
    code = (
        "import json, django; django.setup(); from loadtest.trials.environment import environment;"
        "print(json.dumps(environment()['versions']))"
    )
    told = {**os.environ, **addresses, "DJANGO_SETTINGS_MODULE": "ledger.settings"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=BASE_DIR, env=told, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.deep
@needs_mariadb
@needs_zookeeper
def test_up_brings_them_up_beside_the_others(tmp_path, monkeypatch):
    for name in ("DATABASE_URL", "REDIS_URL", "REDIS_NODES", "MARIADB_URL", "ZOOKEEPER_HOSTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LAB_DIR", str(tmp_path / "lab"))
    try:
        assert "MARIADB_URL" not in embedded.up()
        addresses = embedded.up("mariadb", "zookeeper")
        assert addresses.keys() >= {"DATABASE_URL", "REDIS_URL", "MARIADB_URL", "ZOOKEEPER_HOSTS"}
        servers = [psutil.Process(pid) for pid in embedded.status()["pids"].values()]
        assert len(servers) == 8
        assert _versions(addresses).keys() >= {"postgresql", "valkey", "mariadb", "zookeeper"}
        gone = {
            "MARIADB_URL": "mysql://lab@/lab?unix_socket=/nowhere",
            "ZOOKEEPER_HOSTS": "127.0.0.1:1,nowhere:x/a",
        }
        assert not _versions({**addresses, **gone}).keys() & {"mariadb", "zookeeper"}
    finally:
        embedded.down()
    assert not any(server.is_running() for server in servers)
