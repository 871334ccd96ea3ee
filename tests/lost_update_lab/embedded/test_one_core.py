"""A search keeps to one core with its servers, and gives back what it had."""

import os
import threading

import psycopg
import pytest

from lost_update_lab import explore
from lost_update_lab.embedded import one_core as module
from lost_update_lab.embedded.one_core import one_core

several = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) == 1,
    reason="this process has one core, or the system cannot say which it has",
)


@several
def test_what_works_in_turns_shares_a_core_until_the_end(postgres_server, valkey_server):
    servers, cores = (postgres_server(), valkey_server()), os.sched_getaffinity(0)
    goes_on, begun = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: (begun.set(), goes_on.wait()))
    with servers[0].connect() as before:
        with one_core(), servers[0].connect() as session:
            thread.start()
            begun.wait()
            sessions = [before.info.backend_pid, session.info.backend_pid]
            inside = [thread.native_id, *(server.pid for server in servers), *sessions]
            here = os.sched_getaffinity(0)
            assert len(here) == 1
            assert all(os.sched_getaffinity(each) == here for each in inside)
        for each in (0, thread.native_id, *(server.pid for server in servers), before.info.backend_pid):
            assert os.sched_getaffinity(each) == cores
        goes_on.set()
        thread.join()


@several
def test_a_server_that_ends_meanwhile_is_no_mistake(valkey_server):
    server, cores = valkey_server(), os.sched_getaffinity(0)
    with one_core():
        server.kill()
    assert os.sched_getaffinity(0) == cores


@several
def test_where_a_server_ran_before_it_runs_again(valkey_server):
    server, cores = valkey_server(), os.sched_getaffinity(0)
    os.sched_setaffinity(server.pid, {max(cores)})
    with one_core():
        assert os.sched_getaffinity(server.pid) == os.sched_getaffinity(0)
    assert os.sched_getaffinity(server.pid) == {max(cores)}


@several
def test_a_process_that_has_one_core_is_left_as_it_is(valkey_server):
    server, cores = valkey_server(), os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        with one_core():
            assert os.sched_getaffinity(server.pid) == cores
    finally:
        os.sched_setaffinity(0, cores)


@several
@pytest.mark.parametrize("missing", ["STAT", "THREADS"])
def test_without_proc_nothing_is_done(missing, monkeypatch, tmp_path):
    cores = os.sched_getaffinity(0)
    monkeypatch.setattr(module, missing, tmp_path / "none")
    with one_core():
        assert os.sched_getaffinity(0) == cores


@several
def test_explore_keeps_to_one_core(scenario_servers):
    database, redis = scenario_servers

    def setup(sql):
        sql.execute("CREATE TABLE IF NOT EXISTS cores (n int)")
        sql.execute("TRUNCATE cores")

    def writes_how_many(sql):
        sql.execute("INSERT INTO cores VALUES (%s)", [len(os.sched_getaffinity(0))])

    def are_one():
        with psycopg.connect(database) as connection:
            return connection.execute("SELECT count(*) FROM cores WHERE n <> 1").fetchone() == (0,)

    servers = {"database": database, "redis": redis, "disposable": True}
    found = explore([writes_how_many] * 2, setup=setup, invariant=are_one, control=False, **servers)
    assert found.kept
    assert len(os.sched_getaffinity(0)) > 1
