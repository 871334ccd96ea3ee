"""`make demo`: what it leaves behind is a report, and no process."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

MARK = "LAB_TEST_MARK"


class Demo:
    """A demo on servers of its own, recognised by a mark in the environment of all its processes, and by its
    folder (PostgreSQL writes its title over its environment)."""

    def __init__(self, folder: Path) -> None:
        self.mark, self.folder = uuid.uuid4().hex, str(folder)
        given = {
            name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")
        }
        self.output = folder / "report"
        environment = {
            **given,
            MARK: self.mark,
            "LAB_DIR": str(folder / "lab"),
            "DEMO_SECONDS": "500ms",
            "DEMO_OUTPUT": str(self.output),
            "DEMO_PASSWORD": "open sesame",
        }
        self.log = folder / "demo.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "loadtest.demo"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def family(self) -> list[psutil.Process]:
        """Every process on this machine that has the mark."""
        found = []
        for process in psutil.process_iter():
            try:
                marks = process.environ().get(MARK) == self.mark, process.cwd().startswith(self.folder)
                if any(marks) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def until(self, words: str, seconds: float = 60) -> list[psutil.Process]:
        """Wait until a process of the family has `words` in its command line."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.log.read_text()
            for process in self.family():
                try:
                    if words in " ".join(process.cmdline()):
                        return self.family()
                except psutil.Error:
                    continue
            time.sleep(0.1)
        raise AssertionError(f"no {words}: {self.log.read_text()}")

    def all_gone(self, seconds: float = 30) -> bool:
        deadline = time.monotonic() + seconds
        while self.family() and time.monotonic() < deadline:
            time.sleep(0.1)
        return not self.family()


@pytest.fixture
def demo() -> Iterator[Demo]:
    folder = Path(tempfile.mkdtemp(prefix="lab-demo-"))
    started = Demo(folder)
    yield started
    for process in started.family():
        process.kill()
    shutil.rmtree(folder)


@pytest.mark.timeout(300)
def test_the_demo(demo: Demo) -> None:
    code = demo.process.wait(timeout=280)
    said = demo.log.read_text()
    assert code == 0, said
    results = json.loads((demo.output / "compare.json").read_text())["results"]
    assert {each["strategy"]: each["verdict"] for each in results} == {
        "no-lock": "lost",
        "naive-lock": "lost",
        "setnx": "kept",
        "watchdog": "kept",
        "select-for-update": "kept",
        "optimistic-version": "kept",
    }
    assert all(each["lost_amount"] > 0 for each in results if each["verdict"] == "lost")
    assert (demo.output / "index.html").stat().st_size > 10_000
    for words in ("make serve", "http://127.0.0.1:", "login demo, password open sesame"):
        assert words in said
    assert demo.all_gone(0), "something keeps running"


def test_ctrl_c_ends_all_of_it(demo: Demo) -> None:
    family = demo.until("locust")
    assert len(family) > 5  # the mark is found in the servers' environments too
    demo.process.send_signal(signal.SIGINT)
    assert demo.process.wait(timeout=60) == 130
    assert demo.all_gone(5), [process.cmdline() for process in demo.family()]


def test_sigkill_of_the_demo_ends_all_of_it(demo: Demo) -> None:
    demo.until("locust")
    demo.process.kill()
    demo.process.wait()
    assert demo.all_gone(), [process.cmdline() for process in demo.family()]


def test_sigkill_of_the_web_server_ends_the_demo(demo: Demo) -> None:
    family = demo.until("locust")
    web = [process for process in family if "gunicorn" in " ".join(process.cmdline())]
    min(web, key=lambda process: process.create_time()).kill()
    assert demo.process.wait(timeout=100) in (2, 3), demo.log.read_text()
    assert demo.all_gone(5), [process.cmdline() for process in demo.family()]
