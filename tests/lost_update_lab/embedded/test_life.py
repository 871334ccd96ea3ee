"""Start, stop, kill, pause: the data and the address stay."""

import os
import subprocess
from collections import deque

import psutil
import psycopg
import pytest
import redis

from loadtest.servers import Postgres, ServerError, Valkey
from lost_update_lab.embedded import ports
from lost_update_lab.embedded.reaper import lives


def test_the_session_servers_answer(redis_client):
    assert redis_client.set("k", "v", ifeq="x") is None  # IFEQ: this is Valkey 9 and not an older Redis
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        assert connection.info.server_version // 10000 == 18


@pytest.mark.deep
@pytest.mark.parametrize("end", ["kill", "stop", "stop_immediately"])
def test_postgres_keeps_a_commit_over(end, postgres_server):
    server = postgres_server()
    with server.connect() as connection:
        assert connection.execute("SHOW fsync").fetchone() == ("on",)
        connection.execute("CREATE TABLE t AS SELECT 42 AS n")
    url = server.url
    getattr(server, end)()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)
    server.start()
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT n FROM t").fetchone() == (42,)


@pytest.mark.deep
def test_a_kill_is_over_for_the_children_too(postgres_server):
    """Else the next start now and then finds the memory of the old server still in use."""
    server = postgres_server()
    sessions = [server.connect() for _ in range(20)]
    family = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
    assert len(family) > len(sessions)
    server.kill()
    assert not any(map(lives, family))
    server.start()


@pytest.mark.parametrize(("persistence", "kept"), [(None, None), ("always", b"v"), ("everysec", b"v")])
def test_valkey_keeps_a_key_over_a_kill_only_with_persistence(persistence, kept, valkey_server):
    server = valkey_server(persistence=persistence)
    server.client().set("k", "v")
    if persistence == "everysec":
        server.client().execute_command("WAITAOF", 1, 0, 5000)
    server.kill()
    server.start()
    assert server.client().get("k") == kept


def test_a_port_stays_over_a_restart(valkey_server):
    server = valkey_server(port=0)
    before = server.tcp_url
    server.restart()
    assert server.tcp_url == before
    assert redis.Redis.from_url(before).ping()


def test_a_paused_server_is_silent_and_remembers(valkey_server):
    server = valkey_server()
    server.client().set("k", "v")
    server.pause()
    with pytest.raises(redis.TimeoutError):
        server.client(socket_timeout=0.2).get("k")
    server.resume()
    assert server.client().get("k") == b"v"


@pytest.mark.deep
def test_a_paused_server_can_be_stopped(valkey_server, postgres_server):
    for server in (valkey_server(), postgres_server()):
        process = psutil.Process(server.pid)
        server.pause()
        server.stop()
        assert not process.is_running()


def test_maxmemory_evicts(valkey_server):
    client = valkey_server(maxmemory="2mb", config={"maxmemory-policy": "allkeys-lru"}).client()
    client.set("first", 1)
    for i in range(3000):
        client.set(f"k{i}", "x" * 1000)
    assert client.info("stats")["evicted_keys"] > 0


def test_a_server_that_does_not_start_says_why(tmp_path):
    with pytest.raises(
        ServerError, match=r"ended at its start.*FATAL.*no-such-directive|Bad directive"
    ) as error:
        Valkey(config={"no-such-directive": "1"}).start()
    assert "valkey.log" in str(error.value)


@pytest.mark.deep
def test_a_second_postgres_on_one_folder_is_refused(tmp_path):
    with Postgres(tmp_path / "data"):
        second = Postgres(tmp_path / "data")
        with pytest.raises(ServerError, match="Another PostgreSQL"):
            second.start()
        second.close()


def test_a_stale_postmaster_pid_with_a_reused_id_is_no_obstacle(tmp_path):
    data = tmp_path / "data"
    with Postgres(data) as server:
        server.kill()
        lock = data / "postmaster.pid"
        lines = lock.read_text().split("\n")
        lock.write_text("\n".join([str(os.getppid()), *lines[1:]]))
        server.start()
        assert server.running


@pytest.mark.parametrize("left", ["empty", "a zombie's id"])
def test_what_a_power_cut_left_of_postmaster_pid_is_no_obstacle(left, tmp_path):
    data = tmp_path / "data"
    with Postgres(data) as server:
        server.kill()
        child = subprocess.Popen(["true"])
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and no process has noticed
        _, *lines = (data / "postmaster.pid").read_text().split("\n")
        (data / "postmaster.pid").write_text("" if left == "empty" else "\n".join([str(child.pid), *lines]))
        server.start()
        assert server.answers()
        child.wait()


def test_two_ports_that_were_handed_out_are_two(monkeypatch):
    """A server that is not up yet has not taken its port."""
    first, second = ports.free_port(), ports.free_port()
    offered = iter([first, first, second, first])
    monkeypatch.setattr(ports, "_handed_out", deque(maxlen=10))
    monkeypatch.setattr(ports.random, "choice", lambda _: next(offered))
    assert [ports.free_port(), ports.free_port()] == [first, second]


def test_close_leaves_no_file_and_no_process(valkey_server):
    server = Valkey().start()
    process, folder = psutil.Process(server.pid), server.run
    server.close()
    assert not process.is_running()
    assert not folder.exists()


def test_deep_folders_still_have_sockets(tmp_path):
    deep = tmp_path.joinpath(*["d" * 40] * 5)
    with Postgres(deep / "pg") as server, Valkey(deep / "valkey") as valkey:
        assert len(str(deep)) > 200
        assert server.answers()
        assert valkey.answers()


def test_signals_of_the_terminal_do_not_reach_a_server(valkey_server):
    server = valkey_server()
    assert os.getpgid(server.pid) != os.getpgid(0)
    assert os.getsid(server.pid) != os.getsid(0)
