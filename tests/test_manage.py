"""What `make install` gives: `manage.py`, which says so if it was not run, and the command."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import manage
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


def test_a_reader_that_goes_away_is_no_error() -> None:
    """As `manage.py … | head` does. The name of a command is asked for: that needs no server."""
    with subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "help", "--commands"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        process.stdout.close()
        assert process.stderr
        assert process.stderr.read() == ""
    assert process.returncode == 128 + signal.SIGPIPE


def test_a_broken_pipe_of_another_kind_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(arguments: list[str]) -> None:
        raise BrokenPipeError("a server has gone")

    monkeypatch.setattr("django.core.management.execute_from_command_line", broken)
    with pytest.raises(BrokenPipeError, match="a server has gone"):
        manage.main()
