"""The soak's client processes, real ones: one that dies is never a smaller crowd."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from loadtest.soak.crowd import ClientDied, Crowd
from lost_update_lab.embedded.ports import free_port


def order(folder: Path, number: int = 0, **given: Any) -> dict[str, Any]:
    """No server listens at its port: a posting is sent again until its client is killed."""
    book = {"id": "b", "name": f"book-{number}", "folder": str(folder), "careful": True}
    common = {
        "host": "127.0.0.1",
        "port": free_port(),
        "books": [book],
        "callers": 1,
        "accounts": 1,
        "seed": 1,
    }
    return {**common, "drop": 0, "number": number, **given}


def test_a_client_that_is_killed_is_not_taken_for_one_that_has_ended(tmp_path: Path) -> None:
    with Crowd([order(tmp_path), order(tmp_path, 1)]) as crowd:
        victim = crowd.processes[0].pid
        os.kill(victim, signal.SIGKILL)
        with pytest.raises(ClientDied, match=f"client {victim} ended with code -9"):
            crowd.wait_for(1, quiet=60.0)


def test_a_client_whose_caller_fails_says_so_by_its_exit_code(tmp_path: Path) -> None:
    with (
        Crowd([order(tmp_path, accounts="none")]) as crowd,
        pytest.raises(ClientDied, match="ended with code 1"),
    ):
        crowd.wait_for(1, quiet=60.0)
