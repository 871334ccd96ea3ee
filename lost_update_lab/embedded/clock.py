"""Moves the clock of one server process, with libfaketime (Debian's package `faketime`)."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import redis

from lost_update_lab.embedded.base import Unavailable

PROBE = "lab:clock-probe"
#: ms by which a clock that follows may be late, and the question underway
LAG = 20
PLACES = ("/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib/faketime/libfaketime.so.1")


def library() -> Path | None:
    return next((path for place in PLACES for path in Path("/").glob(place[1:])), None)


def available() -> str | None:
    """Return None if clocks can be moved here, else the reason."""
    if not sys.platform.startswith("linux"):
        return "moving a server's clock needs Linux"
    return None if library() else "install faketime"


class ProcessClock:
    """The clock of one process, which reads the time from `file` when it is started with `environment`.

    Only the wall clock moves. The monotonic clock does not, nor do time-outs inside the server.
    """

    def __init__(self, file: Path) -> None:
        if reason := available():
            raise Unavailable(reason)
        self.file = file
        self._offset = 0.0
        self.set(0)

    def environment(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(library()),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def now(self) -> float:
        """Return the time that the process sees, in seconds since 1970."""
        return time.time() + self._offset

    def set(self, offset: float) -> None:
        """Let the clock run `offset` seconds ahead of the real time."""
        self._offset = offset
        self._write(f"{offset:+.6f}")

    @staticmethod
    def clean_up_after(pid: int) -> None:
        """Remove the two files that libfaketime leaves behind in a process that was killed."""
        for name in (f"faketime_shm_{pid}", f"sem.faketime_sem_{pid}"):
            Path("/dev/shm", name).unlink(missing_ok=True)  # noqa: S108

    def _write(self, text: str) -> None:
        new = self.file.with_suffix(".new")
        new.write_text(text + "\n")
        new.replace(self.file)  # atomic, so the process never reads half a time

    def wait_until_followed(self, client: redis.Redis) -> None:
        """Wait until the cached clock, by which Valkey expires keys, shows the new time too."""
        ahead = 3_600_000  # ms, longer than any lease
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            expiry = round(self.now() * 1000) + ahead
            client.set(PROBE, 1, pxat=expiry)
            left = client.pttl(PROBE)
            client.delete(PROBE)
            if abs(left - (expiry - self.now() * 1000)) <= LAG:
                return
        raise TimeoutError("the server's clock did not follow within 5 s")
