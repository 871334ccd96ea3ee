"""`make demo` and `make serve`: what they leave behind is a report, and no process."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from loadtest.demo.login import demo_login
from tests.loadtest.family import Family

Start = Callable[..., Family]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short, for the sockets in it."""
    made = Path(tempfile.mkdtemp(prefix="lab-demo-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """`start("loadtest.demo", DEMO_SECONDS="1")`"""
    with ExitStack() as families:

        def start(module: str, *, in_background: bool = False, **variables: str) -> Family:
            family = Family(module, folder, in_background=in_background, **variables)
            families.callback(family.end)
            return family

        yield start


@pytest.fixture
def demo(start: Start, folder: Path) -> Family:
    return start("loadtest.demo", DEMO_SECONDS="500ms", DEMO_OUTPUT=str(folder / "report"))


@pytest.mark.whole_command(short=False)
@pytest.mark.timeout(900)
def test_the_demo(demo: Family, folder: Path) -> None:
    code = demo.process.wait(timeout=880)
    said = demo.log.read_text()
    assert code == 0, said
    results = json.loads((folder / "report/compare.json").read_text())["results"]
    assert {each["strategy"]: each["verdict"] for each in results} == {
        "no-lock": "lost",
        "naive-lock": "lost",
        "setnx": "kept",
        "watchdog": "kept",
        "select-for-update": "kept",
        "optimistic-version": "kept",
    }
    assert all(each["lost_amount"] > 0 for each in results if each["verdict"] == "lost")
    assert (folder / "report/index.html").stat().st_size > 10_000
    for words in ("make serve", "http://127.0.0.1:", "login demo, password open sesame"):
        assert words in said
    # not at once: the reaper ends when it hears that its owner has (lost_update_lab/embedded/reaper.py)
    assert demo.all_gone(5), [process.cmdline() for process in demo.family()]


@pytest.mark.whole_command
def test_ctrl_c_ends_all_of_it(demo: Family) -> None:
    family = demo.until("locust")
    assert len(family) > 5  # the mark is found in the servers' environments too
    demo.process.send_signal(signal.SIGINT)
    assert demo.process.wait(timeout=200) == 130
    assert demo.all_gone(5), [process.cmdline() for process in demo.family()]


@pytest.mark.whole_command
def test_sigkill_of_the_demo_ends_all_of_it(demo: Family) -> None:
    demo.until("locust")
    demo.process.kill()
    demo.process.wait()
    assert demo.all_gone(), [process.cmdline() for process in demo.family()]


@pytest.mark.whole_command
def test_sigkill_of_the_web_server_ends_the_demo(demo: Family) -> None:
    family = demo.until("locust")
    web = [process for process in family if "gunicorn" in " ".join(process.cmdline())]
    min(web, key=lambda process: process.create_time()).kill()
    assert demo.process.wait(timeout=200) in (2, 3), demo.log.read_text()
    assert demo.all_gone(5), [process.cmdline() for process in demo.family()]


@pytest.mark.parametrize("port", ["abc", "-1", "70000"])
def test_serve_says_what_a_port_is(port: str) -> None:
    words = [sys.executable, "-m", "loadtest.demo.serve"]
    done = subprocess.run(
        words, env={**os.environ, "PORT": port}, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 2
    assert f"'{port}' is no port: write PORT=8000" in done.stderr


@pytest.mark.whole_command
def test_serve_until_ctrl_c(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        served = start("loadtest.demo.serve", PORT=str(port))
        served.says("Ctrl-C ends all of it")
    said = served.log.read_text()
    assert f"Port {port} is taken" in said
    assert "login demo, password open sesame" in said
    address = re.search(r"http://127.0.0.1:\d+", said)
    assert address
    with urllib.request.urlopen(f"{address[0]}/admin/login/", timeout=30) as page:
        assert page.status == 200
    commands = [" ".join(process.cmdline()) for process in served.family()]
    assert sum("procrastinate worker" in each for each in commands) >= 2
    served.process.send_signal(signal.SIGINT)
    assert served.process.wait(timeout=200) == 0
    assert served.all_gone(5), [process.cmdline() for process in served.family()]


@pytest.mark.whole_command
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_serve_in_the_background_ends_on_either_signal(start: Start, how: signal.Signals) -> None:
    served = start("loadtest.demo.serve", in_background=True, PORT="0")
    served.says("Ctrl-C ends all of it")
    served.process.send_signal(how)
    assert served.process.wait(timeout=200) == 0
    assert served.all_gone(5), [process.cmdline() for process in served.family()]


@pytest.mark.whole_command
def test_serve_ends_when_its_servers_end(start: Start) -> None:
    served = start("loadtest.demo.serve", PORT="0")
    served.says("Ctrl-C ends all of it")
    (keeper,) = (each for each in served.family() if "loadtest.servers.keeper" in each.cmdline())
    keeper.terminate()  # as `servers down --force` does
    assert served.process.wait(timeout=200) == 2
    assert "start it again" in served.log.read_text()
    assert served.all_gone(5), [process.cmdline() for process in served.family()]


@pytest.mark.parametrize(("given", "told"), [("soon", "'soon' is no duration"), ("0", "'0': more than 0")])
def test_bad_seconds_are_bad_usage(start: Start, given: str, told: str) -> None:
    demo = start("loadtest.demo", DEMO_SECONDS=given)
    assert demo.process.wait(timeout=200) == 2
    assert f"DEMO_SECONDS: {told}" in demo.log.read_text()


@pytest.mark.django_db
def test_a_password_that_was_never_written_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_DIR", str(tmp_path))
    monkeypatch.delenv("DEMO_PASSWORD", raising=False)
    (tmp_path / "demo-password").touch()  # the process that made it died
    name, password = demo_login()
    assert len(password) > 10
    assert demo_login() == (name, password)
