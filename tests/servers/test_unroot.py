"""Not root, and yet no folder of mode 0700 is an obstacle: a clone may lie anywhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from loadtest.servers import unroot

# what initdb does first: it asks access(2) whether it may read and run the program beside it
ASK = "import os, sys; sys.exit(os.geteuid() == 0 or not os.access(sys.argv[1], os.R_OK | os.X_OK))"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to leave root")
@pytest.mark.parametrize("way", unroot.WAYS)
def test_a_program_below_a_private_folder_may_be_asked_for_and_run(way: str, tmp_path: Path) -> None:
    if reason := unroot.probe(unroot.WAYS[way]):
        pytest.skip(f"{way} does not work here: {reason}")
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    program = private / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    command = [sys.executable, "-I", "-S", unroot.__file__, way, sys.executable, "-c", ASK, str(program)]
    assert subprocess.run(command, check=False).returncode == 0
    program.chmod(0o644)  # nobody may run what has no x
    assert subprocess.run(command, check=False).returncode == 1
