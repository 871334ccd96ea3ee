"""What is printed to be done again works in the shell in which it was printed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ledger.addresses import BASE_DIR
from loadtest.commandline.again import again


def test_it_names_this_python_this_manage_py_and_this_path(monkeypatch: pytest.MonkeyPatch) -> None:
    assert again("explore", "--replay", "token/l/3b") == "python manage.py explore --replay token/l/3b"
    monkeypatch.setattr(sys, "argv", ["../lab/manage.py", "explore"])
    monkeypatch.setattr(sys, "executable", str(BASE_DIR / "my env" / "bin" / "python"))
    monkeypatch.setenv("PYTHONPATH", "my locks")
    monkeypatch.chdir(BASE_DIR)
    mine = "'my env/bin/python' ../lab/manage.py explore --replay"
    assert again("explore", "--replay", "token/l/3b") == f"{mine} token/l/3b"
    assert (
        again("explore", "--replay", "m:l/l/3b", third_party=True) == f"PYTHONPATH='my locks' {mine} m:l/l/3b"
    )


def test_a_python_that_the_shell_finds_is_called_by_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["manage.py"])
    monkeypatch.setattr(sys, "executable", str(python))
    assert again("explore") == "python3 manage.py explore"
