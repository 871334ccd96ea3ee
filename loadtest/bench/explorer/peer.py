"""frontrun on a case, in a process group of its own: when its answer arrives, everything that it started has ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from loadtest.bench.explorer import frontrun_program
from loadtest.bench.explorer.cases import SearchCase
from loadtest.bench.explorer.search import rates
from loadtest.bench.locks.peer_python import NotInstalled, python_with
from loadtest.bench.measured import Row, failed, not_run

PEER = "frontrun"
NEEDS = ("frontrun[sql]", "psycopg[binary]", "redis")
MARGIN = 8.0  # seconds beyond those for its search and its replays


def measure(case: SearchCase, seconds: float, install: bool, database: str, redis_url: str) -> Row:
    """Return its row. Without an answer in time it has no rate. Its output from before a hang still counts."""
    row: Row = {"strategy": PEER, "case": case.name}
    try:
        python = python_with(PEER, NEEDS, make=install)
    except NotInstalled as error:
        return row | not_run(error)
    script = Path(frontrun_program.__file__)
    command = [python.with_name(PEER), python, script, case.name, database, redis_url, seconds]
    patience = 2 * seconds + MARGIN
    out, complaint, in_time = answer([str(word) for word in command], patience)
    try:
        told: dict[str, Any] = json.loads(out.splitlines()[-1])
    except (ValueError, IndexError):
        if in_time:
            return row | failed((complaint.strip().splitlines() or ["no answer"])[-1])
        return row | failed(f"no answer within {patience:g} s")
    return {
        **row,
        **rates(told["schedules"], None, told["seconds"]),
        "played": 0,
        "verdict": told["verdict"],
        "right": told["verdict"] == case.right,
        "replayed": told.get("replayed", "") if in_time else "hangs",
        "cause": told["cause"],
    }


def answer(command: Sequence[str], patience: float) -> tuple[str, str, bool]:
    """Return its output, its error output, and whether it ended by itself within `patience` seconds.

    `command` may be a wrapper that starts the real program. If that survived, it would keep its sessions, and so the
    table's locks.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        return *process.communicate(timeout=patience), True
    except subprocess.TimeoutExpired:
        _kill(process)
        return *process.communicate(), False
    finally:
        _kill(process)


def _kill(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
