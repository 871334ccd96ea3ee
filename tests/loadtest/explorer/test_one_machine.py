"""A lock on files that is handed in, as on one machine: to look for its module is no step of the worker."""

from pathlib import Path

import pytest

from loadtest.explorer.lanes import Lanes
from loadtest.findings.job import Job
from lost_update_lab.model.system import UNBROKEN

#: its file lies in the folder of its module, or above it: whoever looks for the module asks for the folder of the file.
#: Its own code is not on the stack while it waits: nobody has asked before
LOCK = """
import os
import fasteners

def mine(name):
    return fasteners.InterProcessLock(os.path.join(os.path.dirname(__file__), "{above}", f"{{name}}.lock"))
"""


@pytest.mark.deep(short=False)
@pytest.mark.usefixtures("committed_db")
@pytest.mark.parametrize("above", ["", ".."])
def test_a_lock_beside_its_module_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, above: str
) -> None:
    """Each look at the modules of the workers was a step, in which they were looked at. A look for packages, by
    importlib_metadata, asked when the folder was changed."""
    (code := tmp_path / "code").mkdir()
    (code / "of_a_stranger.py").write_text(LOCK.format(above=above))
    monkeypatch.syspath_prepend(code)
    job = Job(strategy="of_a_stranger:mine", one_machine=True, faults=0, budget=None)
    with Lanes(1) as lanes:
        [(_, answer)] = lanes.explore([job])
    found = answer["result"]
    assert (found.exhausted, found.cause) == (True, ""), found
    assert {word for word, _ in found.came_to.values()} == {UNBROKEN}
