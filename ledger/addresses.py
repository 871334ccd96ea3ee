"""Where the servers are: the environment first, else the embedded ones that `manage.py servers up` started."""

from __future__ import annotations

import json
import os
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
NAMES = ("DATABASE_URL", "REDIS_URL", "MARIADB_URL", "ZOOKEEPER_HOSTS", "REDIS_NODES")
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
    """Return the known server addresses, those of NAMES that there are."""
    try:
        found = json.loads((lab_dir() / "servers.json").read_text())
    except (OSError, ValueError):
        found = {}
    if not _keeper_lives(found):
        found = {}
    found |= {name: os.environ[name] for name in NAMES if os.environ.get(name)}
    return {name: str(found[name]) for name in NAMES if found.get(name)}


def _keeper_lives(state: dict[str, object]) -> bool:
    """After a power cut the state file is still there, and the servers that it names are not."""
    try:
        os.kill(int(str(state.get("keeper", os.getpid()))), 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True


def required(name: str) -> str:
    """Return one address, or raise NoServers with the command that starts the server."""
    try:
        return addresses()[name]
    except KeyError:
        raise NoServers(REMEDY.format(name=name)) from None
