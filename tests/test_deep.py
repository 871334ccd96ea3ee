"""`make test` names what it leaves to `make test-deep`, and CI runs both."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deep import COMMANDS as COMMAND
from tests.deep import DEEP, SHORT, WITHOUT

ROOT = Path(__file__).resolve().parent.parent
TESTS = """
import pytest

@pytest.mark.whole_command
@pytest.mark.parametrize("end", ["interrupted", "killed"])
def test_the_demo(end): pass

@pytest.mark.deep(short=False)
def test_the_longest_of_all(): pass

@pytest.mark.parametrize("bound", [1, pytest.param(2, marks=pytest.mark.deep),
                                   pytest.param(3, marks=pytest.mark.deep)])
def test_a_search(bound): pass

@pytest.mark.deep_after(1)
@pytest.mark.parametrize("word", ["kept", pytest.param("stalled", marks=pytest.mark.deep), "lost"])
def test_a_verdict(word): pass

def test_that_is_quick(): pass
"""
QUICK = {"test_a_search[1]", "test_a_verdict[kept]", "test_that_is_quick"}
COMMANDS = {"test_the_demo[interrupted]", "test_the_demo[killed]"}
SEARCHES = {
    "test_the_longest_of_all",
    "test_a_search[2]",
    "test_a_search[3]",
    "test_a_verdict[stalled]",
    "test_a_verdict[lost]",
}


def session(folder: Path, *words: str, tests: str = TESTS) -> subprocess.CompletedProcess[str]:
    (folder / "test_some.py").write_text(tests)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers -rA\n")
    plugins = ("-p", "tests.skips", "-p", "tests.deep", "-p", "no:django")
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


def not_run(done: subprocess.CompletedProcess[str]) -> set[str]:
    return set(re.findall(r"^NOT RUN test_some.py::(\S+)", done.stdout, re.MULTILINE))


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_last_lines_name_what_was_left_out_and_who_runs_it(workers: str, tmp_path: Path) -> None:
    done = session(tmp_path, "-n", workers, "-m", WITHOUT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert passed(done) == QUICK
    assert not_run(done) == COMMANDS | SEARCHES
    *_, told, result = done.stdout.splitlines()
    assert told == "7 long tests not run here: make test-deep"
    assert "3 passed, 7 deselected" in result


@pytest.mark.parametrize(("kind", "those"), [(COMMAND, COMMANDS), (DEEP, SEARCHES)])
def test_the_others_are_those_that_were_left_out(kind: str, those: set[str], tmp_path: Path) -> None:
    done = session(tmp_path, "-m", kind)
    assert passed(done) == those
    assert not not_run(done)


TOUR = """
@pytest.mark.deep
def test_a_tour(): pass
"""


@pytest.mark.parametrize(
    ("kind", "tests", "first", "those"),
    [
        (COMMAND, TESTS, {"test_the_demo[interrupted]"}, COMMANDS),
        (DEEP, TESTS, set(), SEARCHES),  # `make test` runs the first one with other parameters
        (DEEP, TESTS.replace("@", TOUR + "@", 1), {"test_a_tour"}, {*SEARCHES, "test_a_tour"}),
    ],
)
def test_the_short_form_runs_the_first_test_of_each_file(
    kind: str, tests: str, first: set[str], those: set[str], tmp_path: Path
) -> None:
    done = session(tmp_path, SHORT, "-m", kind, tests=tests)
    assert passed(done) == first
    assert not_run(done) == those - first


def test_a_mark_that_its_file_does_not_name_is_refused(tmp_path: Path) -> None:
    """`make test-deep` imports only files that name its marks."""
    (tmp_path / "marks.py").write_text("import pytest\nlong = pytest.mark.deep\n")
    tests = "from marks import long\n@long\ndef test_a_tour(): pass\n"
    done = session(tmp_path, tests=tests)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "test_some.py::test_a_tour is marked 'deep', which its file does not name" in done.stderr
    assert passed(session(tmp_path, tests=tests + "# deep\n")) == {"test_a_tour"}


def test_a_session_of_one_kind_imports_no_file_without_it(tmp_path: Path) -> None:
    (tmp_path / "test_broken.py").write_text("raise ImportError\n")
    assert passed(session(tmp_path, "-m", DEEP)) == SEARCHES


def test_a_file_that_is_named_runs_whole(tmp_path: Path) -> None:
    done = session(tmp_path, "test_some.py")
    assert passed(done) == QUICK | COMMANDS | SEARCHES
    assert not not_run(done)


def test_both_targets_together_run_all_tests_and_ci_calls_both() -> None:
    made = {
        target: [quoted or word for quoted, word in re.findall(r'pytest -m (?:"(.+?)"|(\w+)) ', recipe)]
        for target, recipe in re.findall(
            r"^([a-z-]+):.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE
        )
    }
    assert (made["test"], made["test-deep"]) == ([WITHOUT], [DEEP, COMMAND])
    ci = re.findall(r"^make (.+)", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert ci[-2:] == ["test", "test-deep SHORT=1"]
