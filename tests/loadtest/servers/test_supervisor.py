"""What is killed is started again by its keeper, at the same address and with its data."""

import os
import signal
import time
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from loadtest.servers import ServerError, Valkey, embedded
from loadtest.servers.supervisor import FIRST_PAUSE, LONGEST_PAUSE, Supervisor
from lost_update_lab.embedded.reaper import lives
from tests.loadtest.servers.test_embedded import lab, wait_until  # noqa: F401  (a fixture: servers of the test's own)


def alive(pid: int) -> bool:
    """A zombie is not."""
    try:
        return lives(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False


def answers(url: str) -> bool:
    try:
        if url.startswith("postgresql"):
            with psycopg.connect(url, connect_timeout=2) as connection:
                return connection.execute("SELECT n FROM t").fetchone() == (42,)
        return redis.Redis.from_url(url).ping()
    except (psycopg.OperationalError, redis.RedisError):
        return False


@pytest.mark.deep
def test_the_keeper_starts_killed_servers_again(lab):  # noqa: F811
    with embedded.using() as addresses:
        with psycopg.connect(addresses["DATABASE_URL"]) as connection:
            connection.execute("CREATE TABLE t AS SELECT 42 AS n")
        before = embedded.status()["pids"]
        for name in ("postgres", "valkey"):  # only the server itself: its children have to notice
            os.kill(before[name], signal.SIGKILL)
        wait_until(lambda: all(answers(addresses[each]) for each in ("DATABASE_URL", "REDIS_URL")), 30)
        after = embedded.status()
        assert after["addresses"].items() >= addresses.items()
        assert {name for name in before if before[name] != after["pids"][name]} == {"postgres", "valkey"}
    assert not any(alive(pid) for pid in after["pids"].values())


@pytest.mark.deep
def test_a_postgres_does_not_start_beside_sessions_of_a_killed_one(postgres_server):
    """It refuses, as long as one of them holds the old memory: the supervisor has to try again."""
    server = postgres_server()
    with server.connect() as connection:
        session = psutil.Process(connection.info.backend_pid)
        session.suspend()  # it does not notice that its server is gone
        os.kill(server.pid, signal.SIGKILL)
        wait_until(lambda: not server.running)
        try:
            with pytest.raises(ServerError, match="pre-existing shared memory"):
                server.start()
        finally:
            session.resume()
    wait_until(lambda: not session.is_running())
    server.start()
    assert server.answers()


class Endless(Valkey):
    """A server that ends at once."""

    def command(self) -> list[str]:
        return ["false"]


def test_what_keeps_ending_is_tried_ever_more_rarely_and_never_given_up(tmp_path: Path):
    told: list[str] = []
    supervisor, server = Supervisor(told.append), Endless(tmp_path / "v")
    server.spawn()
    supervisor.watch([server])
    (life,) = supervisor._lives
    pauses = []
    while len(told) < 4:
        if supervisor.look():
            pauses.append(life.pause)
            life.born = time.monotonic()  # however long this machine stalls: it does not stay
        time.sleep(0.01)
    assert pauses == [FIRST_PAUSE * 2**n for n in range(4)]
    assert told[0] == f"v has ended with code 1: started again (log: {server.log})"
    for _ in range(10):
        life.due = 0
        wait_until(lambda: not server.running)
        assert supervisor.look()
    assert life.pause == LONGEST_PAUSE
    server.close()


@pytest.mark.deep
def test_a_server_that_cannot_be_started_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    told: list[str] = []
    supervisor = Supervisor(told.append)
    with Valkey(tmp_path / "bad") as bad, Valkey(tmp_path / "good") as good:
        supervisor.watch([bad, good])
        bad.kill()
        good.kill()
        monkeypatch.setattr(bad, "command", lambda: ["/no/such/program"])
        assert supervisor.look() == [good]
        wait_until(lambda: answers(good.url))
        assert "bad has ended, and could not be started again" in told[0]
