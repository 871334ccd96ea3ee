"""A lock on files that is handed in, as on one machine: to ask where its module lies is no step of the worker."""

from pathlib import Path

import pytest

from loadtest.explorer.lanes import Lanes
from loadtest.findings.job import Job
from lost_update_lab.model.system import UNBROKEN

#: its file lies above its module, so to ask where the module lies asks for the folder of the file. Its own code is not
#: on the stack while it waits: nobody has asked before
LOCK = """
import os
import fasteners

def mine(name):
    above = os.path.dirname(os.path.dirname(__file__))
    return fasteners.InterProcessLock(os.path.join(above, f"{name}.lock"))
"""


@pytest.mark.deep(short=False)
@pytest.mark.usefixtures("committed_db")
def test_a_lock_above_its_module_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the workers' modules was a step, in which the modules were looked at."""
    (code := tmp_path / "code").mkdir()
    (code / "of_a_stranger.py").write_text(LOCK)
    monkeypatch.syspath_prepend(code)
    job = Job(strategy="of_a_stranger:mine", one_machine=True, faults=0, budget=None)
    with Lanes(1) as lanes:
        [(_, answer)] = lanes.explore([job])
    found = answer["result"]
    assert (found.exhausted, found.cause) == (True, ""), found
    assert {word for word, _ in found.came_to.values()} == {UNBROKEN}
