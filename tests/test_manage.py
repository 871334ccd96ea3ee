"""`manage.py` by a Python that has not got the lab's requirements."""

import signal
import subprocess
import sys

import pytest

import manage
from tests.test_house import ROOT


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
