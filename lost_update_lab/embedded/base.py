"""What all servers share: a child process with a log and a data folder, which is stopped or killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import psutil

from lost_update_lab.embedded.one_core import STARTED
from lost_update_lab.embedded.reaper import REAPER, lives


class ServerError(RuntimeError):
    """A server did not start or did not stop. The message quotes the end of its log."""


class Unavailable(ServerError):
    """This server's programs are not installed. The message says what to install."""


class EmbeddedServer:
    """One server process. It ends with this process, however this process ends (reaper.py).

    `data` is the folder for its files; None means a temporary folder, which `close` removes. Data and address survive
    `stop`, `kill`, `restart` and `start`. As a context manager it runs from `start` to `close`.
    """

    name = "server"
    stop_signal = signal.SIGTERM
    start_timeout = 30.0
    stop_timeout = 20.0
    #: a replica. Clients get the address of the primary that it follows.
    follows = False

    def __init__(self, data: Path | str | None = None) -> None:
        # Sockets live here and not under `data`, because a socket's path may have about 100 bytes.
        self.run = _short_temporary_folder()
        REAPER.remove(self.run)
        self.data = Path(data).absolute() if data else self.run / "data"
        self.log = self.data.with_suffix(".log") if data else self.run / f"{self.name}.log"
        #: its name in messages
        self.label = self.data.name if data else self.name
        self._process: subprocess.Popen[bytes] | None = None

    # -- what a server says about itself ------------------------------------------------------------------

    @property
    def url(self) -> str:
        raise NotImplementedError

    def prepare(self) -> None:
        """Make the data folder and what it must contain. Called before each start."""
        self.data.mkdir(parents=True, exist_ok=True)

    def command(self) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def answers(self) -> bool:
        """Ask the server something. False, or any exception of its client, means that it is not ready yet."""
        raise NotImplementedError

    # -- its life -----------------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """The process id. Raises ServerError if the server does not run."""
        if self._process is None:
            raise ServerError(f"{self.name} does not run")
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code of a process that ended by itself, or minus the signal that ended it. None otherwise."""
        return self._process.poll() if self._process is not None else None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        """Start the server and return when it answers. If it does not, raise ServerError with the end of its log."""
        if self.running:
            return self
        self.spawn()
        try:
            self._wait_until_it_answers()
        except BaseException:
            self.kill()
            raise
        return self

    def spawn(self) -> None:
        """Start the process without waiting for it. Kill first what the last one left behind: gunicorn's orphaned
        workers would hold the port for seconds."""
        if self._process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._ended()
        self.prepare()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.data,
                env=self.environment(),
                start_new_session=True,  # Ctrl-C reaches this process only, which then ends its servers in order
            )
        REAPER.watch(self._process.pid, self.stop_signal)
        STARTED.add(self._process.pid)

    def stop(self, signum: int | None = None) -> None:
        """Send the polite signal and wait. After `stop_timeout` seconds, kill the server and raise ServerError."""
        process = self._process
        if process is None or not self.running:
            self._ended()
            return
        self.resume()
        process.send_signal(signum or self.stop_signal)
        if not self._ends_within(self.stop_timeout):
            self.kill()
            raise ServerError(f"{self.name} did not stop within {self.stop_timeout:g} s. {tail(self.log)}")
        self._ended()

    def kill(self) -> None:
        """SIGKILL the server and its children, as a power cut would."""
        if self._process is not None and self.running:
            self._process.send_signal(signal.SIGSTOP)  # so that it starts no more children
        family = self._family()
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        if self._process is not None:
            self._ends_within(self.stop_timeout)
        # Wait for the children too: PostgreSQL does not start while an old child holds its shared memory.
        deadline = time.monotonic() + self.stop_timeout
        while any(map(lives, family)) and time.monotonic() < deadline:
            time.sleep(0.005)
        self._ended()

    def restart(self) -> Self:
        self.stop()
        return self.start()

    def pause(self) -> None:
        """SIGSTOP. The server keeps its memory and its connections, and does nothing."""
        self._signal_family(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal_family(signal.SIGCONT)

    def close(self) -> None:
        """Stop the server and remove its temporary folder."""
        try:
            self.stop()
        finally:
            shutil.rmtree(self.run, ignore_errors=True)
            REAPER.keep(self.run)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: Any) -> None:
        self.close()

    # -- details ------------------------------------------------------------------------------------------

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + self.start_timeout
        reason = ""
        while time.monotonic() < deadline:
            if (code := self.exit_code) is not None:
                raise ServerError(f"{self.name} ended at its start with code {code}. {tail(self.log)}")
            try:
                if self.answers():
                    return
            except Exception as error:  # noqa: BLE001  each client says "not yet" in its own way
                reason = f" Last answer: {error}."
            time.sleep(0.02)
        raise ServerError(
            f"{self.name} did not answer within {self.start_timeout:g} s.{reason} {tail(self.log)}"
        )

    def _family(self) -> list[psutil.Process]:
        """Return the server, followed by its children. Empty if it does not run."""
        if not self.running:
            return []
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(self.pid)
            return [process, *process.children(recursive=True)]
        return []

    def _signal_family(self, signum: int) -> None:
        for process in self._family():
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signum)

    def _ends_within(self, seconds: float) -> bool:
        with suppress(subprocess.TimeoutExpired):
            if self._process is not None:
                self._process.wait(seconds)
            return True
        return False

    def _ended(self) -> None:
        if self._process is not None:
            REAPER.forget(self._process.pid)
            STARTED.discard(self._process.pid)
            self._process = None


def start_together(servers: Sequence[EmbeddedServer]) -> None:
    """Start them side by side, as each takes its time. Raises what the first one raises, once the others have come to
    an end."""
    with ThreadPoolExecutor(len(servers)) as threads:
        list(threads.map(lambda each: each.start(), servers))


def tail(log: Path, lines: int = 15) -> str:
    """Return the end of a log, with its path, for an error message."""
    text = log.read_text(errors="replace") if log.exists() else ""
    end = "\n".join(f"  {line}" for line in text.splitlines()[-lines:])
    return f"The end of {log}:\n{end or '  (empty)'}"


def _short_temporary_folder() -> Path:
    """Make a folder of mode 0700 with a path short enough for a socket in it (at most 103 bytes on macOS)."""
    base = tempfile.gettempdir()
    return Path(tempfile.mkdtemp(prefix="lab-", dir=base if len(base) < 60 else "/tmp"))  # noqa: S108
