"""What all servers have in common: a child process with a log, a data folder, and an end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import psutil

from lost_update_lab.embedded.reaper import REAPER, lives


class ServerError(RuntimeError):
    """A server did not start or did not stop. The message quotes the end of its log."""


class Unavailable(ServerError):
    """The programs of this server are not installed. The message says what to install."""


class Server:
    """One server process. It never outlives this process, whatever ends this process (reaper.py).

    `data`: where its files live. With None they live in a temporary folder that `close` removes.
    Data and address stay the same over `stop`, `kill`, `restart`, `start`. As a context manager:
    `start` … `close`.
    """

    name = "server"
    stop_signal = signal.SIGTERM
    start_timeout = 30.0
    stop_timeout = 20.0
    #: a replica: clients are given the address of what it follows
    follows = False

    def __init__(self, data: Path | str | None = None) -> None:
        # Sockets live here and not under `data`: a socket's path has room for about 100 bytes.
        self.run = _short_temporary_folder()
        REAPER.remove(self.run)
        self.data = Path(data).absolute() if data else self.run / "data"
        self.log = self.data.with_suffix(".log") if data else self.run / f"{self.name}.log"
        #: how messages call it
        self.label = self.data.name if data else self.name
        self._process: subprocess.Popen[bytes] | None = None

    # -- what a server says about itself ------------------------------------------------------------------

    @property
    def url(self) -> str:
        raise NotImplementedError

    def prepare(self) -> None:
        """Before each start: make the data folder and whatever must be in it."""
        self.data.mkdir(parents=True, exist_ok=True)

    def command(self) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def answers(self) -> bool:
        """Ask the server something. False, or any exception of its client, means: not yet."""
        raise NotImplementedError

    # -- its life -----------------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """Process id. Raises ServerError while it does not run."""
        if self._process is None:
            raise ServerError(f"{self.name} does not run")
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Of a process that has ended and was not told to; negative: the signal. None otherwise."""
        return self._process.poll() if self._process is not None else None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        """Returns when the server answers. Raises ServerError with the end of its log if it does not."""
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
        """Start the process and do not wait for it. What one that has ended left behind is ended first: gunicorn's
        orphaned workers would hold its port for seconds."""
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
                start_new_session=True,  # Ctrl-C is for us; we then end the server in our own order
            )
        REAPER.watch(self._process.pid, self.stop_signal)

    def stop(self, signum: int | None = None) -> None:
        """Polite end. Raises ServerError (and kills it) if it has not ended after `stop_timeout` seconds."""
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
        """SIGKILL for the server and its own children: what a machine does that loses power."""
        if self._process is not None and self.running:
            self._process.send_signal(signal.SIGSTOP)  # so that it starts no child behind our back
        family = self._family()
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        if self._process is not None:
            self._ends_within(self.stop_timeout)
        # The children too: PostgreSQL does not start while one of the old ones still holds its memory.
        deadline = time.monotonic() + self.stop_timeout
        while any(map(lives, family)) and time.monotonic() < deadline:
            time.sleep(0.005)
        self._ended()

    def restart(self) -> Self:
        self.stop()
        return self.start()

    def pause(self) -> None:
        """SIGSTOP: it keeps its memory and its connections, and does nothing."""
        self._signal_family(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal_family(signal.SIGCONT)

    def close(self) -> None:
        """`stop`, and remove the temporary folder."""
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
            except Exception as error:  # noqa: BLE001  each client has its own way to say "not yet"
                reason = f" Last answer: {error}."
            time.sleep(0.02)
        raise ServerError(
            f"{self.name} did not answer within {self.start_timeout:g} s.{reason} {tail(self.log)}"
        )

    def _family(self) -> list[psutil.Process]:
        """The server first, then its children. Empty when it does not run."""
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
            self._process = None


def tail(log: Path, lines: int = 15) -> str:
    """The end of a log, with its path, for an error message."""
    text = log.read_text(errors="replace") if log.exists() else ""
    end = "\n".join(f"  {line}" for line in text.splitlines()[-lines:])
    return f"The end of {log}:\n{end or '  (empty)'}"


def _short_temporary_folder() -> Path:
    """A new folder of mode 0700 whose path leaves room for a socket's name (limit: 103 bytes on macOS)."""
    base = tempfile.gettempdir()
    return Path(tempfile.mkdtemp(prefix="lab-", dir=base if len(base) < 60 else "/tmp"))  # noqa: S108
