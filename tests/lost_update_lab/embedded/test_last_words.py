"""The last words about ended embedded servers are true."""

import fcntl
import signal
import subprocess
import sys
from contextlib import suppress

import psutil
import pytest
from django.core.management import CommandError, call_command

from ledger.addresses import BASE_DIR
from loadtest.management.commands.compare import Command
from loadtest.servers import ServerError, embedded
from lost_update_lab.embedded.reaper import lives
from tests.loadtest.servers.test_embedded import lab, processes, wait_until  # noqa: F401  (a fixture: servers of the test's own)


def names_below(pid: int) -> set[str]:
    found = set()
    for child in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            found.add(child.name())
    return found


STOPPED = """
import os, signal
from loadtest.commandline.program import run
run(lambda: os.kill(os.getpid(), signal.SIGINT) or signal.pause())
"""
STOPPED_WITHIN = """
import os, signal
from loadtest.commandline.program import run
from loadtest.servers.embedded import using
def body():
    with using():
        os.kill(os.getpid(), signal.SIGINT)
        signal.pause()
run(body)
"""


def last_words(code: str) -> str:
    stopped = subprocess.run(
        [sys.executable, "-c", code], cwd=BASE_DIR, capture_output=True, text=True, check=True
    )
    return stopped.stderr


@pytest.mark.deep
def test_a_comparison_is_a_user_of_the_servers(lab, monkeypatch, tmp_path):  # noqa: F811
    embedded.up()
    servers = processes()
    monkeypatch.setattr(Command, "measure", lambda *_: embedded.down())  # by another process, meanwhile
    with pytest.raises(CommandError, match=r"still uses.*--force"):
        call_command("compare", output=tmp_path)
    wait_until(lambda: not any(map(lives, servers)))  # they end with it: no process wants them now


def test_down_by_force_ends_a_keeper_that_has_started_no_server_yet(lab):  # noqa: F811
    with lab.users.open("a") as user:
        fcntl.flock(user, fcntl.LOCK_SH)
        keeper = embedded._start_keeper(lab)
        wait_until(lab.keeper_lives)
        embedded.down(force=True)
        assert keeper.wait(10) == 0


def test_down_does_not_call_servers_ended_that_have_not(lab, monkeypatch):  # noqa: F811
    monkeypatch.setattr(embedded, "PATIENCE", 0.2)
    with lab.keeper.open("a") as keeper:
        fcntl.flock(keeper, fcntl.LOCK_EX)  # a keeper that does not end
        with pytest.raises(ServerError, match=r"have not ended within 0.2 s"):
            embedded.down()


@pytest.mark.deep
def test_the_last_words_of_a_run_are_true(lab):  # noqa: F811
    embedded.up()
    assert last_words(STOPPED) == (
        "Stopped. The servers keep running: `python manage.py servers down` ends them.\n"
    )
    embedded.down()
    assert last_words(STOPPED) == "Stopped. Nothing keeps running.\n"


def test_ctrl_c_waits_for_the_end_of_the_servers(lab):  # noqa: F811
    assert last_words(STOPPED_WITHIN) == "Stopped. Nothing keeps running.\n"
    assert not lab.keeper_lives()


@pytest.mark.deep
def test_ctrl_c_while_the_servers_of_the_faults_start(tmp_path):
    words = "--quick", "--hazard=crash-holding", "--output", str(tmp_path)
    with subprocess.Popen(
        [sys.executable, "manage.py", "faults", *words], cwd=BASE_DIR, stderr=subprocess.PIPE, text=True
    ) as command:
        wait_until(lambda: "initdb" in names_below(command.pid) or "postgres" in names_below(command.pid))
        command.send_signal(signal.SIGINT)
        _, told = command.communicate(timeout=200)
    assert command.returncode == 130, told
    assert "Traceback" not in told
    assert "stopped. No results are written." in told
    assert not (tmp_path / "faults.json").exists()
