"""A program ends on SIGINT and on SIGTERM alike, also one that a script has started in the background."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import signal
from loadtest.commandline.program import run
def body():
    print("ready", flush=True)
    signal.pause()
    return 0
raise SystemExit(run(body))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_though_it_began_with_sigint_ignored(number: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),  # as a shell does for `&`
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, "Stopped." in said) == (130, True)
