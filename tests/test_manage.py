"""What `make install` gives: `manage.py`, which says so if it was not run, and the command."""

import os
import subprocess
import sys
from pathlib import Path

from tests.test_house import ROOT

COMMAND = "lost-update-lab"


def test_without_django_it_says_what_to_do() -> None:
    done = subprocess.run(
        [sys.executable, "-S", str(ROOT / "manage.py"), "check"],  # -S: nothing that was installed
        env={},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "`make install`, then `. .venv/bin/activate`" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_checkout_has_the_command_that_pages_and_results_print(tmp_path: Path) -> None:
    """`make install` makes it; pip and the environment that it would make stand aside here."""
    folder = tmp_path / "environment" / "bin"
    folder.mkdir(parents=True)
    (folder / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (folder / "python").chmod(0o700)
    made = ["make", "-o", str(folder.parent / "base.stamp"), f"VENV={folder.parent}", str(folder / COMMAND)]
    subprocess.run(made, cwd=ROOT, check=True, capture_output=True)
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    told = subprocess.run(
        [folder / COMMAND, "--help"], cwd=tmp_path, env=clean, capture_output=True, text=True
    )
    assert told.stdout.startswith(f"usage: {COMMAND} ")
