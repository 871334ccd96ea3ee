"""Python environments for peers with other dependencies, created once, in $LAB_PEERS or else `.lab/bench-env/`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ledger.addresses import lab_dir


class NotInstalled(RuntimeError):
    """The environment could not be created. The message is the reason, for the table."""


def peers_folder() -> Path:
    return Path(os.environ.get("LAB_PEERS") or lab_dir() / "bench-env")


def python_with(peer: str, needs: Sequence[str] = (), *, make: bool = True) -> Path:
    """Return a Python with `peer` (its name on PyPI), or with what it `needs`, and with hiredis, as in our own
    environment. Raises NotInstalled."""
    folder = peers_folder() / peer
    python = folder / "bin" / "python"
    done = folder / "installed"
    if done.exists() and python.exists():
        return python
    if not make:
        raise NotInstalled("not installed yet; a run without --quick installs it")
    folder.parent.mkdir(parents=True, exist_ok=True)
    _run([sys.executable, "-m", "venv", "--clear", str(folder)])
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input"]
    _run([str(python), "-m", "pip", "install", *quiet, *(needs or [peer]), "hiredis"])
    done.touch()
    return python


def _run(command: list[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    except subprocess.CalledProcessError as error:
        last = (error.stderr or error.stdout or str(error)).strip().splitlines()[-1:]
        raise NotInstalled(f"not installed: {' '.join(last)}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(f"not installed: {error}") from error
