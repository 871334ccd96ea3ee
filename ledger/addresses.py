"""The addresses of the servers: from the environment, or else of the servers that `manage.py servers up` started."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

BASE_DIR = Path(__file__).resolve().parent.parent
ADDRESS_NAMES = ("DATABASE_URL", "REDIS_URL", "MARIADB_URL", "ZOOKEEPER_HOSTS", "REDIS_NODES")
REMEDY = (
    "No {name}: no server is given and no embedded one runs. Start them with `make serve` or "
    "`python manage.py servers up`, or set {name}."
)


class NoServers(Exception):
    """Neither the environment nor a running embedded server says where to connect."""


def lab_dir() -> Path:
    """The git-ignored folder in which the embedded servers keep data, logs and their state file."""
    return Path(os.environ.get("LAB_DIR") or BASE_DIR / ".lab")


def addresses() -> dict[str, str]:
    """Return the known server addresses, by ADDRESS_NAMES."""
    found = live_state(lab_dir() / "servers.json")
    found |= {name: os.environ[name] for name in ADDRESS_NAMES if os.environ.get(name)}
    return {name: str(found[name]) for name in ADDRESS_NAMES if found.get(name)}


def live_state(file: Path) -> dict[str, Any]:
    """Return the last state that the keeper of the embedded servers wrote, or {} if that keeper is gone.

    After SIGKILL or a power cut the file still exists, but the servers that it names do not.
    """
    state = read_state(file)
    born = state.get("keeper_born")
    return state if born and born == birth(state["keeper"]) else {}


def read_state(file: Path) -> dict[str, Any]:
    """Return the last state that a keeper wrote, even if that keeper is gone."""
    try:
        return dict(json.loads(file.read_text()))
    except (OSError, ValueError):
        return {}


def birth(pid: int) -> str | None:
    """Return what distinguishes this process from every other process with the same id. None: it has ended.

    On Linux: the id of the boot, and the ticks from the boot to the start of the process. A start time would move
    whenever the clock is set, because the kernel does not store one. Other kernels do.
    """
    if sys.platform != "linux":
        return _time_of_birth(pid)
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    return None if state in (b"Z", b"X") else f"{boot} {int(fields[18])}"  # proc(5): starttime


def _time_of_birth(pid: int) -> str | None:
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.6f}"
    except psutil.NoSuchProcess:
        return None


def required(name: str) -> str:
    """Return one address, or raise NoServers with the command that starts the server."""
    try:
        return addresses()[name]
    except KeyError:
        raise NoServers(REMEDY.format(name=name)) from None
