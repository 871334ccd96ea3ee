"""A lock on files that is handed in, as on one machine: where its modules lie is no step of the worker."""

import tempfile
from pathlib import Path

import pytest
from filelock import FileLock

from loadtest.explorer.lanes import Lanes
from loadtest.findings.job import Job
from lost_update_lab.model.system import UNBROKEN


def of_a_library(name: str) -> FileLock:
    """As its users write it."""
    return FileLock(Path(tempfile.gettempdir(), f"{name}.lock"))


@pytest.mark.deep(short=False)
@pytest.mark.usefixtures("committed_db")
def test_a_lock_of_a_library_is_searched() -> None:
    """Each look at the workers' modules was a step, in which the modules were looked at."""
    job = Job(strategy=f"{__name__}:of_a_library", one_machine=True, faults=0, budget=60.0)
    with Lanes(1) as lanes:
        [(_, answer)] = lanes.explore([job])
    found = answer["result"]
    assert (found.exhausted, found.cause) == (True, ""), found
    assert {word for word, _ in found.came_to.values()} == {UNBROKEN}
