"""Where the results go is looked at before the work, not after it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from ledger.addresses import BASE_DIR

COMMANDS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "compare": ([], {"strategy": ["no-lock"], "users": 1, "seconds": 0.2}),
    "faults": ([], {"strategy": ["no-lock"], "hazard": ["crash-holding"]}),
    "explore": ([], {"strategy": ["no-lock"], "faults": 0}),
    "trust": ([], {"strategy": ["no-lock"], "hazard": ["pause"]}),
    "bench": (["lock-tables"], {"quick": True}),
}


@pytest.mark.usefixtures("committed_db")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("below", ["", "folder"])
def test_a_folder_that_cannot_be_written_to_is_bad_usage(
    command: str, below: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "afile"
    file.write_text("mine")
    arguments, options = COMMANDS[command]
    with pytest.raises(CommandError, match=rf"--output {file / below}: nothing can be written") as raised:
        call_command(command, *arguments, output=file / below, **options)
    assert raised.value.returncode == 2
    assert file.read_text() == "mine"
    assert not capsys.readouterr().out, "it had begun"


@pytest.mark.usefixtures("committed_db")
def test_nor_one_for_the_histories(tmp_path: Path) -> None:
    file = tmp_path / "afile"
    file.touch()
    with pytest.raises(CommandError, match=r"--history .*afile: nothing can be written"):
        call_command("compare", output=tmp_path, history=file, strategy=["no-lock"], users=1, seconds=0.2)


def test_nor_one_for_a_soak(tmp_path: Path) -> None:
    file = tmp_path / "afile"
    file.touch()
    done = subprocess.run(
        [sys.executable, "-m", "loadtest.soak", "--postings", "20", "--strikes", "0", "--output", str(file)],
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert f"--output: {file}: nothing can be written there" in done.stderr
