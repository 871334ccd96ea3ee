"""With LAB_NO_SKIPS=1 a skipped test fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TESTS = """
import pytest

@pytest.mark.skipif(True, reason="install mariadb-server")
def test_of_what_is_not_there(): pass

def test_that_finds_it_out():
    pytest.skip("no chromium")

@pytest.mark.skipif(True, reason="only root has to leave root")
def test_of_root(): pass

def test_that_runs(): pass
"""


@pytest.mark.parametrize(
    ("asked", "told"), [("1", "1 failed, 1 passed, 1 skipped, 1 error"), ("", "1 passed, 3 skipped")]
)
def test_a_skip_fails_where_it_is_not_allowed(asked: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.skips", "-p", "no:django", str(tmp_path)]
    environment = {**os.environ, "LAB_NO_SKIPS": asked, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert told in done.stdout, done.stdout + done.stderr
