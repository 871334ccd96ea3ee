"""docs/your-own-code.md, executed: its files, its commands, what they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lost_update_lab.command.replay import as_test

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "your-own-code.md").read_text()
RUN = "test_voucher.py::test_a_voucher_is_redeemed_once"
#: what a page shows of pytest's output
SHOWN = re.compile(r"^```(?:text)?\n(violated: .*?)^```", re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The page's files, as they stand there."""
    for name, text in re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE, re.DOTALL):
        (tmp_path / name).write_text(f"# {name}\n{text}")  # line numbers are those of the page
    return tmp_path


def started(folder: Path, *command: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    servers = (
        "DATABASE_URL",
        "REDIS_URL",
        "PYTEST_XDIST_WORKER",
        "DJANGO_SETTINGS_MODULE",
        "INITDB_TEMPLATE",
    )
    clean = {name: value for name, value in os.environ.items() if name not in servers}
    environment = {**clean, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "-p lost_update_lab.pytest_plugin"}
    command = (sys.executable, "-m", *command)
    return subprocess.run(
        command, cwd=folder, env=environment, input=typed, capture_output=True, text=True, check=False
    )


def is_shown(block: str, output: str) -> bool:
    """Is the block a whole part of the output, line after line? `…` stands for any lines, or for a part of a line. How
    long the search took is not compared."""
    block, output = (re.sub(r" in \d+\.\d s$", "", each, flags=re.MULTILINE) for each in (block, output))
    lines = [
        r"(?:.*\n)*?" if line.strip() == "…" else re.escape(line).replace("…", ".*") + r"\n"
        for line in block.splitlines()
    ]
    return re.search("^" + "".join(lines), output, re.MULTILINE) is not None


def test_a_block_that_leaves_out_a_line_is_seen() -> None:
    output = "Ann\n  SELECT n FROM t\n  COMMIT\nBob\n41 schedules in 0.4 s\n"
    assert is_shown("Ann\n  SELECT n FROM t\n  COMMIT\nBob\n41 schedules in 1.6 s\n", output)
    assert is_shown("Ann\n  …\nBob\n", output)
    assert is_shown("  SELECT …\n", output)
    assert not is_shown("Ann\n  COMMIT\n", output)
    assert not is_shown("Bob\n  …\nAnn\n", output)
    assert not is_shown("  SELECT n\n", output)


@pytest.mark.deep
def test_the_page_finds_its_race_and_keeps_it_mended(folder: Path) -> None:
    shown = [*SHOWN.findall(PAGE), *SHOWN.findall((ROOT / "README.md").read_text())]
    assert len(shown) == 2
    done = started(folder, "pytest", "-q", "--race-summary", "race.md")
    assert done.returncode == 1
    assert [block for block in shown if not is_shown(block, done.stdout)] == []
    assert "| **violated** |" in (folder / "race.md").read_text()
    replayed = started(folder, "lost_update_lab.command.main", "replay", f"{RUN}/v/3a")
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    assert "one schedule of Ann and Bob" in replayed.stdout
    mended = (
        (folder / "voucher.py")
        .read_text()
        .replace('code = %s", [code])', 'code = %s FOR UPDATE", [code])', 1)
    )
    (folder / "voucher.py").write_text(mended)
    assert "1 passed" in started(folder, "pytest", "-q").stdout


def test_the_script_of_the_page(folder: Path) -> None:
    assert started(folder, "script").stdout.split() == ["violated", "v/3a"]


def test_the_schedule_as_a_test(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    made = as_test(RUN, "v/3a")
    assert made.startswith("def test_a_voucher_is_redeemed_once_in_the_order_3a(race):")
    assert "race.replay('v/3a', crashes=1)" in made


SCENARIO = """
from voucher import one_voucher, redeem

def voucher(race):
    race.setup(one_voucher)
    race.worker("Ann", redeem, "XMAS", "Ann")
    race.worker("Bob", redeem, "XMAS", "Bob")
"""


def test_a_breakpoint_is_hit_in_the_order_of_the_schedule(folder: Path) -> None:
    """And in none of the runs before it."""
    stops = (
        (folder / "voucher.py")
        .read_text()
        .replace("        if left < 1:", "        breakpoint()\n        if left < 1:")
    )
    (folder / "voucher.py").write_text(stops)
    (folder / "scenarios.py").write_text(SCENARIO)
    replay = ("lost_update_lab.command.main", "replay", "scenarios:voucher/v/3a")
    done = started(folder, *replay, typed="p customer\nc\n" * 2)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"\(Pdb\) '(\w+)'", done.stdout) == ["Bob", "Ann"]
