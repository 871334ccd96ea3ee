"""A command of the lab with all processes that it starts, found again by a mark in their environment."""

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psutil

MARK = "LAB_TEST_MARK"


class Family:
    """`python -m MODULE` on servers of its own. Its processes are recognised by a mark in their environment, or
    by their folder (PostgreSQL writes its title over its environment). `in_background`: as a shell starts `… &`, with
    SIGINT ignored."""

    def __init__(self, module: str, folder: Path, *, in_background: bool = False, **variables: str) -> None:
        self.mark, self.folder = uuid.uuid4().hex, str(folder)
        given = {
            name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")
        }
        environment = {
            **given,
            MARK: self.mark,
            "LAB_DIR": str(folder / "lab"),
            "DEMO_PASSWORD": "open sesame",  # pragma: allowlist secret
            "PYTHONUNBUFFERED": "1",
            **variables,
        }
        self.log = folder / "output.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=_ignore_ctrl_c if in_background else None,
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

    def until(self, words: str, seconds: float = 200) -> list[psutil.Process]:
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

    def says(self, words: str, seconds: float = 200) -> None:
        """Wait until its output has `words`."""
        deadline = time.monotonic() + seconds
        while words not in self.log.read_text():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.1)

    def all_gone(self, seconds: float = 30) -> bool:
        deadline = time.monotonic() + seconds
        while self.family() and time.monotonic() < deadline:
            time.sleep(0.1)
        return not self.family()

    def end(self) -> None:
        """Whatever a failed test has left."""
        for process in self.family():
            process.kill()
        self.process.wait()


def _ignore_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
