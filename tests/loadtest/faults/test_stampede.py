"""Which callers count as arrived: without servers, with callers that come as fast as possible."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from loadtest.faults.hazards.stampede import GATHER, LEASE, THREADS, Stampede
from loadtest.history.journal import Journal


class Herd:
    """A process whose callers have all begun before the judge looks for the first time."""

    answer: dict[str, int] = {}

    def __init__(self, folder: Path) -> None:
        self.journal = Journal(folder)

    def begins(self, *_order: Any) -> None:
        for number in range(THREADS):
            self.journal.invoke(f"{id(self)}-{number}", [("A0001", 1)], "worker")


def test_callers_that_came_before_the_first_look_are_counted(tmp_path) -> None:
    proofs: list[str] = []
    scene: Any = SimpleNamespace(
        folder=tmp_path,
        hire=lambda kind: Herd(tmp_path),
        victim=lambda: "the one inside",
        go_on=lambda victim: None,
        fault=lambda told: None,
        prove=proofs.append,
        wait=lambda herd, seconds: False,
    )
    Journal(tmp_path).invoke("of the one inside", [("A0001", 1)], "worker")
    Stampede().strike(scene)
    assert proofs == ["200 callers came while one worker was inside, and 200 of them had to wait"]


def test_a_holder_that_waits_for_them_all_keeps_its_lock_meanwhile() -> None:
    assert GATHER < LEASE
