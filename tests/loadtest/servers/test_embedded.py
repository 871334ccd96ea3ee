"""The embedded servers: shared by all that run, ended by the last one, recovered after any crash."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import psutil
import psycopg
import pytest
import redis
from django.core.management import call_command

from ledger.addresses import BASE_DIR, addresses, birth
from loadtest.servers import ServerError, embedded, keeper
from loadtest.servers.lab import Lab
from lost_update_lab.embedded import mariadb
from lost_update_lab.embedded.reaper import REAPER, lives

USER = """
import sys
from loadtest.servers import embedded
with embedded.using() as addresses:
    print(addresses["DATABASE_URL"], flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    for name in ("DATABASE_URL", "REDIS_URL", "REDIS_NODES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LAB_DIR", str(tmp_path / "lab"))
    yield Lab()
    embedded.down(force=True)


@contextmanager
def user() -> Iterator[tuple[subprocess.Popen, str]]:
    """Another process inside `using()`, and the address that it got."""
    process = subprocess.Popen(
        [sys.executable, "-c", USER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=BASE_DIR
    )
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def processes() -> list[psutil.Process]:
    return [psutil.Process(pid) for pid in embedded.status()["pids"].values()]


def wait_until(condition, seconds: float = 100) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not come true"
        time.sleep(0.05)


@pytest.mark.deep
def test_up_twice_used_down_and_up_again():
    first = embedded.up()
    assert embedded.up() == first
    assert redis.Redis.from_url(first["REDIS_URL"]).ping()
    with psycopg.connect(first["DATABASE_URL"]) as connection:
        assert connection.execute("SHOW fsync").fetchone() == ("on",)
        connection.execute("CREATE TABLE t AS SELECT 42 AS n")
    servers = processes()
    assert len(servers) == 6  # PostgreSQL, Valkey and its replica, three nodes
    with embedded.using():
        pass
    assert all(map(lives, servers))  # a user that leaves does not end what `up` started
    second = subprocess.run([sys.executable, "-m", keeper.__name__], cwd=BASE_DIR, timeout=200, check=False)
    assert second.returncode == 0  # there is one keeper: another one gives up
    assert all(map(lives, servers))

    embedded.down()
    assert not any(map(lives, servers))
    assert not embedded.status()["running"]
    embedded.down()  # nothing runs: nothing to do
    with psycopg.connect(embedded.up()["DATABASE_URL"]) as connection:
        assert connection.execute("SELECT n FROM t").fetchone() == (42,)


@pytest.mark.deep
def test_two_users_share_and_the_last_one_ends_them():
    with user() as (first, address), user() as (second, other_address):
        assert address == other_address
        servers = processes()
        first.communicate("")
        assert all(map(lives, servers))
        assert embedded.status()["used"]
        second.communicate("")  # returns when the servers have ended
        assert not any(map(lives, servers))


@pytest.mark.deep
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGKILL])
def test_a_killed_user_is_no_user(signum):
    with user() as (process, _):
        servers = processes()
        process.send_signal(signum)
        process.wait(100)
        wait_until(lambda: not any(map(lives, servers)))


@pytest.mark.deep
def test_up_while_a_user_runs_keeps_them_when_it_leaves():
    with user() as (process, address):
        assert embedded.up()["DATABASE_URL"] == address
        process.communicate("")
        assert embedded.status()["running"]


@pytest.mark.deep
def test_down_refuses_while_a_user_runs(lab):
    with user():
        servers = processes()
        with pytest.raises(ServerError, match=r"still uses.*--force"):
            embedded.down()
        assert all(map(lives, servers))
        embedded.down(force=True)
        assert not any(map(lives, servers))


@pytest.mark.deep
def test_the_command_says_that_they_end_with_their_user(capsys):
    with user() as (process, _):
        servers = processes()
        with pytest.raises(SystemExit) as ended:
            call_command("servers", "down")
        assert ended.value.code == 1
        told = capsys.readouterr()
        assert told.out.startswith("Noted: a run (make demo, ")
        assert not told.err
        assert all(map(lives, servers))
        process.communicate("")
    wait_until(lambda: not any(map(lives, servers)))


@pytest.mark.deep
def test_after_the_keeper_was_killed_everything_starts_again(lab):
    before = embedded.up()
    servers = processes()
    os.kill(lab.read_state()["keeper"], signal.SIGKILL)
    wait_until(lambda: not any(map(lives, servers)))
    assert not embedded.status()["running"]
    after = embedded.up()
    assert after != before
    assert psycopg.connect(after["DATABASE_URL"]).execute("SELECT 1").fetchone() == (1,)


@pytest.mark.deep
def test_orphans_of_a_keeper_and_reaper_that_were_both_killed_are_ended(lab):
    embedded.up()
    servers = processes()
    keeper_process = psutil.Process(lab.read_state()["keeper"])
    (reaper,) = set(keeper_process.children()) - set(servers)
    reaper.kill()
    keeper_process.kill()
    keeper_process.wait(100)
    assert all(map(lives, servers))  # the control: they really have no owner any more
    address = embedded.up()["DATABASE_URL"]
    assert not any(map(lives, servers))
    assert psycopg.connect(address).execute("SELECT 1").fetchone() == (1,)


@pytest.mark.deep
def test_a_state_file_left_by_a_reboot_is_no_running_server(lab):
    lab.write_state(
        {
            "DATABASE_URL": "postgresql://gone",
            "keeper": 1,
            "keeper_born": "before the boot",
            "processes": {"postgres": [1, "before the boot"]},
        }
    )
    assert addresses() == {}
    assert not embedded.status()["running"]
    with embedded.using() as given:
        assert given["DATABASE_URL"] != "postgresql://gone"


@pytest.mark.deep
def test_a_step_of_the_clock_ends_nothing(lab, monkeypatch):
    """The kernel then names another time of the boot, and with it another start of every process."""
    with embedded.using() as given:
        boot = psutil._psplatform.boot_time()
        monkeypatch.setattr(psutil._psplatform, "boot_time", lambda: boot + 1)
        assert embedded.status()["running"]
        assert addresses() == given


@pytest.mark.deep
def test_a_relative_folder_is_that_of_the_command_also_for_what_it_starts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAB_DIR", "lab")
    with embedded.using():
        embedded.migrate()
    assert not (BASE_DIR / "lab").exists()


def test_given_servers_are_not_started(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://elsewhere/db")
    with embedded.using() as addresses:
        assert addresses["DATABASE_URL"] == "postgresql://elsewhere/db"
        assert "postgres" not in embedded.status()["pids"]
        assert "valkey" in embedded.status()["pids"]


@pytest.mark.deep
def test_a_server_that_cannot_start_says_why_and_the_next_try_is_a_new_one(lab):
    (lab.folder / "postgres").mkdir()
    obstacle = lab.folder / "postgres" / "not-ours"
    obstacle.write_text("precious")
    with pytest.raises(ServerError, match="postgres could not be started"):
        embedded.up()
    assert obstacle.exists()
    obstacle.unlink()
    embedded.up()


def test_an_order_that_cannot_be_met_ends_no_keeper(lab, monkeypatch):
    """One was left over: only an orderly end takes orders away."""
    monkeypatch.setattr(mariadb, "available", lambda: "install mariadb-server")
    lab.order("mariadb").touch()
    keeper.Keeper(lab).run()  # no process uses them: it ends when it has looked at the orders
    assert not lab.order("mariadb").exists()
    assert str(lab.state) not in REAPER._standing  # it would take the state of the next keeper away


def test_each_server_has_its_own_time_to_start(lab, monkeypatch):
    """We are the keeper: one more server is there each minute."""
    names = iter(["DATABASE_URL", "REDIS_URL", "REDIS_NODES"])
    me = {"keeper": os.getpid(), "keeper_born": birth(os.getpid())}
    state, now = dict(me), [0.0]

    def sleep(_: float) -> None:
        now[0] += 60
        state[next(names)] = "somewhere"
        lab.write_state(state)

    monkeypatch.setattr(embedded, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    with lab.keeper.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert embedded.up().keys() == {"DATABASE_URL", "REDIS_URL", "REDIS_NODES"}
        lab.state.unlink()


@pytest.mark.deep
def test_the_command_returns_although_its_output_is_read_to_the_end():
    def code(*arguments: str) -> int:
        try:
            call_command("servers", *arguments)
        except SystemExit as ended:
            return int(ended.code)
        return 0

    assert code("status") == 1
    command = [sys.executable, "manage.py", "servers", "up"]
    up = subprocess.run(command, cwd=BASE_DIR, capture_output=True, text=True, timeout=280, check=False)
    assert up.returncode == 0, up.stderr
    assert "DATABASE_URL=postgresql://" in up.stdout
    with psycopg.connect(embedded.status()["addresses"]["DATABASE_URL"]) as connection:
        assert connection.execute("SELECT count(*) > 5 FROM django_migrations").fetchone() == (True,)
    assert code("status") == 0
    assert code("down") == 0
    assert code("down") == 0
