"""What `make test` leaves to `make test-commands` is named at its end, and CI runs both."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.whole_commands import ONLY, WITHOUT

ROOT = Path(__file__).resolve().parent.parent
TESTS = """
import pytest

@pytest.mark.whole_command
@pytest.mark.parametrize("end", ["interrupted", "killed"])
def test_the_demo(end): pass

def test_that_is_quick(): pass

def test_of_something_else(): pass
"""
ALL = {"test_the_demo[interrupted]", "test_the_demo[killed]", "test_that_is_quick", "test_of_something_else"}


def session(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_some.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers -rA\n")
    plugins = ("-p", "tests.skips", "-p", "tests.whole_commands", "-p", "no:django")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "LAB_NO_SKIPS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def passed(done: subprocess.CompletedProcess[str]) -> set[str]:
    return set(re.findall(r"^PASSED test_some.py::(\S+)", done.stdout, re.MULTILINE))


@pytest.mark.parametrize("workers", ["0", "2"])
def test_what_is_left_out_is_named_in_the_last_lines_with_who_runs_it(workers: str, tmp_path: Path) -> None:
    without = session(tmp_path, "-n", workers, "-m", WITHOUT)
    assert without.returncode == 0, without.stdout + without.stderr
    *named, told, result = without.stdout.splitlines()[-4:]
    assert named == [f"NOT RUN test_some.py::test_the_demo[{end}]" for end in ("interrupted", "killed")]
    assert told.startswith("2 tests not run here ")
    assert told.endswith(": make test-commands")
    assert "2 passed, 2 deselected" in result
    only = session(tmp_path, "-n", workers, "-m", ONLY)
    assert "NOT RUN" not in only.stdout
    assert passed(without) | passed(only) == ALL
    assert not passed(without) & passed(only)


def test_whoever_asks_for_a_file_gets_all_of_it(tmp_path: Path) -> None:
    done = session(tmp_path, "test_some.py")
    assert passed(done) == ALL
    assert "NOT RUN" not in done.stdout


def test_both_targets_together_run_all_tests_and_ci_calls_both() -> None:
    rules = dict(re.findall(r"^([a-z-]+):.*\n\t(.*pytest.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert f'-m "{WITHOUT}"' in rules["test"]
    assert f"-m {ONLY} " in rules["test-commands"]
    ci = re.findall(r"^make (\S+)", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert ci[-2:] == ["test", "test-commands"]
