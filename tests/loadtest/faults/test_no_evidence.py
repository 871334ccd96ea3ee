"""What looks like evidence, and is none: the hazard came too early or too late, or struck another worker, or none."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ledger.reconcile import ClientOutcome
from loadtest.faults.answers import unserved
from loadtest.faults.hazards import ADVERSARIES
from loadtest.faults.scene.scene import LATE, Scene
from loadtest.history.calls import Call
from tests.loadtest.faults.stand_ins import Late, Someone, scene_of


def call(key: str, worker: str, outcome: ClientOutcome, error: str = "") -> Call:
    return Call(key, (("A0001", 1),), outcome, 0.0, 1.0, worker, error=error)


@pytest.mark.parametrize(
    ("since", "doubted"),
    [
        ([("rival", ClientOutcome.OK)], False),
        ([("rival", ClientOutcome.FAIL)], False),
        ([("victim", ClientOutcome.OK)], True),
        ([("victim", ClientOutcome.OK), ("rival", ClientOutcome.INFO)], True),
        ([], True),
    ],
)
def test_the_crowds_answers_show_nothing_of_the_hazard(
    since: list[tuple[str, ClientOutcome]], doubted: bool
) -> None:
    """Nor does the answer of the worker inside: no caller contended with it then, whatever kept them."""
    calls = [call("crowd", "rival", ClientOutcome.OK)]
    calls += [call(str(number), *each) for number, each in enumerate(since)]
    assert bool(unserved(calls, {"crowd"}, {"victim"})) == doubted


def test_a_worker_that_could_not_begin_in_time_leaves_a_doubt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    log.touch()
    site: Any = SimpleNamespace(postgres=SimpleNamespace(log=log))
    none: Any = None
    scene = Scene(SimpleNamespace(pk="book"), site, none, tmp_path, 1.0, 0)  # type: ignore[arg-type]
    scene.rivals = [Late()]  # type: ignore[list-item]
    monkeypatch.setattr(Scene, "begun", lambda self, workers: False)
    scene.rush(1)
    assert [each.cause for each in scene.doubts] == [LATE]


@pytest.mark.parametrize(
    ("answer", "refused", "cannot"),
    [
        ("{'outcomes': ['ok']}", "", True),
        ("['no wait']", "not granted", True),
        ("['ConnectionError']", "", False),
    ],
)
def test_an_error_at_once_does_not_say_that_nobody_waits(answer: str, refused: str, cannot: bool) -> None:
    waiter = Someone(answer=answer, busy=False, begins=lambda *_: None, finishes=lambda _: True)
    scene = scene_of(
        hire=lambda: waiter,
        begun=lambda _: True,
        cannot="",
        turned_away=lambda _: refused,
        victim=lambda: "victim",
    )
    ADVERSARIES["waiter-interrupted"]().strike(scene)
    assert bool(scene.cannot) == cannot
    assert "proof" not in scene.done


def test_on_a_slow_machine_a_waiter_has_time_to_start_waiting() -> None:
    """Interrupted before it asks for the lock, it can release nothing: that would be taken for a right lock."""
    asked: list[float] = []
    waiter = Someone(pid=1, answer=None, busy=True, begins=lambda *_: None, signal=lambda _: None)
    waiter.finishes = lambda until: asked.append(until - time.monotonic())
    scene = scene_of(hire=lambda: waiter, begun=lambda _: True, victim=lambda: "victim", pace=2.0)
    ADVERSARIES["waiter-interrupted"]().strike(scene)
    assert asked[0] > 1.5


@pytest.mark.parametrize(
    ("taken", "ended", "proved"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_a_business_thread_that_lives_is_no_evidence(taken: bool, ended: bool, proved: bool) -> None:
    worker = Someone(pid=1, asks=lambda *_: (taken, ended), state=lambda: "S")
    scene = scene_of(hire=lambda: worker, longest_lease=lambda: 0.0)
    ADVERSARIES["worker-dies-renewal-lives"]().strike(scene)
    assert ("proof" in scene.done) == proved


@pytest.mark.parametrize(("left", "proved"), [([], True), (["mine", "other"], False), (["other"], True)])
def test_a_session_is_over_when_its_own_node_is_gone(
    left: list[str], proved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rival's node that comes or goes meanwhile is not the holder's."""
    seen = iter([["mine"], *[left] * 3])
    clock = iter(range(0, 1000, 6))
    monkeypatch.setattr("loadtest.faults.hazards.zookeeper_expiry.time", SimpleNamespace(
        monotonic=lambda: next(clock), sleep=lambda _: None
    ))  # fmt: skip
    adversary: Any = ADVERSARIES["zookeeper-session-expiry"]()
    adversary.proxy = SimpleNamespace(port=1, cut=lambda: None, mend=lambda: None)
    site = SimpleNamespace(nodes_in_zookeeper=lambda book: next(seen))
    scene = scene_of(site=site, hire=lambda env: "victim", victim=lambda worker: worker)
    scene.go_on = lambda *_, outlasts: None
    adversary.strike(scene)
    assert ("proof" in scene.done) == proved


@pytest.mark.parametrize(("read", "proved"), [(1.5, True), (2.5, False)])
def test_a_balance_that_was_read_when_the_replica_had_caught_up_is_no_evidence(
    read: float, proved: bool
) -> None:
    adversary: Any = ADVERSARIES["replica-lag"]()
    adversary.replica, adversary.began, adversary.resumed = SimpleNamespace(url=""), 1.0, 2.0
    adversary.prepare, adversary.event = lambda site: None, lambda site: "behind"
    reader = Someone(asks=lambda *_: [read])
    scene = scene_of(rivals=[reader], posts=lambda *_: True, cannot="")
    scene.struck = SimpleNamespace(update=lambda _: None)
    scene.fault = lambda *_: None
    adversary.strike(scene)
    assert ("proof" in scene.done, scene.cannot) == (proved, "")
