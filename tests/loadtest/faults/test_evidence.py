"""What counts as evidence, and which cell waits for which: hazards with scripted callers, without servers."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from loadtest.faults.cell import Cell, CellWorkers
from loadtest.faults.hazards import ADVERSARIES, worker_crash
from loadtest.faults.hazards.failover import FailoverRelease
from loadtest.faults.hazards.split_brain import SplitBrain
from loadtest.faults.hazards.worker_crash import WorkerCrash
from loadtest.faults.scene import occasion, sight
from loadtest.faults.scene.scene import Scene
from tests.loadtest.faults.stand_ins import Late, Struck, scene_of


@pytest.mark.parametrize(("lease", "done"), [(10.0, ["proof", "rivals", "go on"]), (0.0, ["go on"])])
def test_an_event_that_outlasts_the_lease_proves_nothing_and_admits_no_worker(
    lease: float, done: list[str]
) -> None:
    scene = scene_of(lease=lease)
    Struck().strike(scene)
    assert scene.done == done


@pytest.mark.parametrize(("refused", "proofs"), [("not granted (no replica)", 1), ("", 0)])
@pytest.mark.parametrize("slug", ["struck", "connection-exhaustion"])
def test_a_worker_left_outside_was_struck_only_if_the_lock_was_refused(
    slug: str, refused: str, proofs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any other end of its posting (an error on the way, no gate at all) says nothing of the hazard."""
    adversary: Any = Struck() if slug == "struck" else ADVERSARIES[slug]()
    for step in ("prepare", "event", "relief"):
        monkeypatch.setattr(ADVERSARIES["connection-exhaustion"], step, lambda self, site: "seen")
    told: list[str] = []
    scene = scene_of(victim=lambda *_: None, turned_away=lambda worker: refused, prove=told.append, rivals=[])
    adversary.strike(scene)
    assert len(told) == proofs
    assert all(refused in each for each in told)


@pytest.mark.parametrize(
    ("keys", "done"), [({"lock": "PTTL 5"}, ["go on", "proof", "rivals"]), ({}, ["go on", "rivals"])]
)
def test_a_lost_release_is_proved_by_the_lock_that_is_back(
    keys: dict[str, str], done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FailoverRelease, "cut_off", lambda self: None)
    monkeypatch.setattr(FailoverRelease, "event", lambda self, site: "promoted")
    scene = scene_of(keys=lambda: keys)
    FailoverRelease().strike(scene)
    assert scene.done == done


def test_a_worker_that_enters_too_late_may_go_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    site: Any = SimpleNamespace(postgres=SimpleNamespace(log=log))
    book, pool, late = SimpleNamespace(pk="book"), None, Late()
    scene = Scene(book, site, pool, tmp_path, 1.0, 0)  # type: ignore[arg-type]
    assert scene.victim(0.0, late) is None  # type: ignore[arg-type]
    assert late.told == [("go",)]


@pytest.mark.parametrize("wait", [True, False])
def test_an_import_that_nobody_works_on_has_stalled(wait: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_crash, "waiting", lambda book: wait)
    scene = scene_of(enough=-worker_crash.LEASE, stall=None)
    WorkerCrash().go_on(scene, None, 1)  # type: ignore[arg-type]
    assert (scene.stall is not None) == wait


@pytest.mark.parametrize("crowd", ["gets on", "stands still", "breaks"])
def test_the_other_cells_of_an_event_do_not_wait_for_a_worker_that_left(crowd: str) -> None:
    seen: list[str] = []

    def stand(_postings: int) -> None:
        if crowd == "breaks":
            raise RuntimeError
        scene.stall = "stood still" if crowd == "stands still" else None

    scene: Any = SimpleNamespace(crowd=stand, stall=None, hazard_comes=lambda: seen.append("hazard"))
    adversary: Any = SimpleNamespace(
        strike=lambda _: seen.append("strike"), occasion=SimpleNamespace(leave=lambda: seen.append("leave"))
    )
    cell, none = Cell("token", ADVERSARIES["pause"]), Any
    callers = CellWorkers(cell, adversary, none, none, Path())  # type: ignore[arg-type]
    if crowd == "breaks":
        with pytest.raises(RuntimeError):
            callers.happens(scene, cell.case())
    else:
        assert callers.happens(scene, cell.case()) == (crowd == "gets on")
    assert seen == ["hazard", "strike", "leave"] if crowd == "gets on" else ["leave"]


def test_a_cell_that_gave_up_still_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three cells: one gives up waiting and leaves. The event still waits for the two others."""
    monkeypatch.setattr(occasion, "PATIENCE", 0.0)
    event = occasion.Occasion(3)
    with pytest.raises(TimeoutError):
        event.meet(lambda: "too early")
    event.leave()
    with pytest.raises(TimeoutError):
        event.meet(lambda: "without the third")
    event.leave()
    assert event.meet(lambda: "alone") == "alone"


def test_a_cell_leaves_once() -> None:
    seen: list[str] = []
    adversary: Any = SimpleNamespace(occasion=SimpleNamespace(leave=lambda: seen.append("leave")))
    callers = CellWorkers(Cell("token", ADVERSARIES["pause"]), adversary, None, None, Path())  # type: ignore[arg-type]
    callers.leave()
    callers.leave()
    assert seen == ["leave"]


@pytest.mark.parametrize("slug", ["clock-jump-client", "clock-jump-client-back", "split-brain"])
@pytest.mark.parametrize(("inside", "begins"), [(True, True), (False, True), (True, False)])
def test_a_strike_with_no_worker_inside_or_none_arriving_is_not_proved(
    slug: str, inside: bool, begins: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    adversary: Any = ADVERSARIES[slug]()
    adversary.clock = SimpleNamespace(set=lambda seconds: None)
    adversary.others = adversary.old = adversary.new = SimpleNamespace(tcp_url="")
    adversary.front = SimpleNamespace(cut=lambda: None)
    monkeypatch.setattr(SplitBrain, "event", lambda self, site: "two primaries")
    monkeypatch.setattr(sight, "keys", lambda site, book: {})
    site = SimpleNamespace(with_valkey=lambda server: None, move_to=lambda server: None)
    odd = SimpleNamespace(asks=lambda *_: time.time() + getattr(adversary, "jump", 0), busy=False, pid=0)
    scene = scene_of(
        site=site,
        hire=lambda **_: odd,
        posts=lambda worker: begins,
        victim=lambda *_: odd if inside else None,
        turned_away=lambda worker: False,
    )
    adversary.strike(scene)
    proved = inside and (begins or slug != "clock-jump-client")
    assert ("proof" in scene.done, "go on" in scene.done) == (proved, inside)
