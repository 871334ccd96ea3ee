"""docs/CONTRIBUTING.md is executed: its lock, strategy, hazard and workload are added to a copy of the lab, and run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_house import ROOT, tracked

PAGE = ROOT / "docs" / "CONTRIBUTING.md"
FENCE = re.compile(r"^```(?:python|text) (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def add(folder: Path, page: str) -> list[str]:
    """Do in `folder` what `page` says: a block is a new file, or a line behind one that is there. Returns the files."""
    touched = []
    for name, code in FENCE.findall(page):
        path = folder / name
        if not path.exists():
            path.write_text(code)
        else:
            known, _ = code.split("\n", 1)
            assert path.read_text().count(f"{known}\n") == 1, f"{name} has not the line {known!r} once"
            path.write_text(path.read_text().replace(f"{known}\n", code))
        touched.append(name)
    return touched


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("contributor") / "lab"
    for path in tracked():
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    assert len(add(folder, PAGE.read_text())) == 8, "four files, and a line for each"
    return folder


def run(folder: Path, command: str) -> str:
    """Run one of the page's commands in the copy, on the servers of this session."""
    python, *rest = command.split(" ", 1)
    words = [sys.executable, *(["-m", "pytest"] if python == "pytest" else [])]
    environment = {**os.environ, "PYTHONPATH": str(folder), "LAB_DIR": str(folder / ".lab")}
    for name in [name for name in environment if name.startswith("PYTEST_")]:
        del environment[name]
    done = subprocess.run(
        ["/bin/sh", "-c", f'"$@" {rest[0]}', "sh", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, f"{command}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def commands() -> list[str]:
    return [line for block in SHELL.findall(PAGE.read_text()) for line in block.splitlines()]


@pytest.mark.deep
def test_what_the_page_adds_runs(copy: Path) -> None:
    """In the order of the page: pages rewritten, contract tests, measured, merged."""
    said = {command: run(copy, command) for command in commands()}
    [tests] = [out for command, out in said.items() if command.startswith("pytest")]
    assert re.search(r"\d+ passed", tests)
    table = (copy / "docs" / "faults.md").read_text()
    [row] = [line for line in table.splitlines() if line.startswith("| `no-key-update` |")]
    assert row.count("–") == row.count("|") - 2, "nobody measured a cell of it"
    assert "`no-key-update`" in (copy / "docs" / "counterexamples.md").read_text()
    assert "`blink`" in (copy / "docs" / "reference.md").read_text()


def test_a_missing_line_is_reported(tmp_path: Path) -> None:
    (tmp_path / "registry.py").write_text("a = 1\n")
    with pytest.raises(AssertionError, match="has not the line 'b = 1'"):
        add(tmp_path, "```python registry.py\nb = 1\nc = 1\n```\n")
