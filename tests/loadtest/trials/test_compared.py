"""Two runs side by side: findings of one subject are paired, and what changed comes first."""

from __future__ import annotations

from typing import Any

from loadtest.trials.compared import HEAD, Subject, compared, side_by_side


def measured(strategy: str, verdict: str, rate: float, lost: int, **more: Any) -> dict[str, Any]:
    figures = {"ops_per_s": rate, "lost_amount": lost, "latency_ms": {"p50": 1.5, "p99": None}}
    return {"strategy": strategy, "verdict": verdict, **figures, **more}


def test_what_changed_comes_first_with_its_ratio_and_its_money():
    before = [measured("no-lock", "lost", 50, 900), measured("token", "kept", 40, 0)]
    after = [measured("no-lock", "lost", 100, 700), measured("token", "lost", 30, 5)]
    token, control = compared(before, after)
    assert (token.subject.strategy, token.changed, token.throughput_ratio, token.more_lost) == (
        "token",
        True,
        0.75,
        5,
    )
    assert (control.changed, control.throughput_ratio, control.more_lost) == (False, 2, -200)
    assert ("p50", "ms", 1.5, 1.5) in token.figures()
    assert "p99" not in [name for name, *_ in token.figures()]
    assert token.as_json()["second"] == {"verdict": "lost", "lost_amount": 5, "ops_per_s": 30, "p50": 1.5}
    assert len(token.as_row()) == len(HEAD)


def test_what_only_one_has_stands_alone_and_has_changed():
    (only,) = compared([], [measured("token", "kept", 40, 0)])
    assert (only.changed, only.first, only.throughput_ratio, only.more_lost) == (True, None, None, None)
    assert only.as_json()["first"] is None
    assert only.as_row()[4] == ""


def test_no_ratio_comes_of_nothing():
    (pair,) = compared([measured("token", "stalled", 0, 0)], [measured("token", "kept", 40, 0)])
    assert pair.throughput_ratio is None
    (back,) = compared([measured("token", "kept", 40, 0)], [measured("token", "stalled", 0, 0)])
    assert back.throughput_ratio == 0


def test_words_under_hazards_are_paired_by_hazard():
    explored = {"strategy": "token", "verdict": "lost", "under": {"pause": "lost", "crash-holding": "kept"}}
    cells = [{"strategy": "token", "verdict": "kept", "hazard": "pause"}]
    trusted = {
        "strategy": "token",
        "verdict": "lost",
        "rows": [{"hazard": "pause", "word": "lost"}, {"hazard": "x", "word": ""}],
    }
    words = {pair.subject.hazard: pair.changed for pair in compared([explored], [trusted])}
    assert words == {"": False, "pause": False, "crash-holding": True}
    pairs = {pair.subject: pair for pair in compared([explored], cells)}
    assert pairs[Subject("token", "pause")].changed


def test_the_usual_stores_are_compared_and_a_control_elsewhere_is_its_own():
    one = [
        measured("no-lock", "lost", 1, 1, store="postgres"),
        measured("no-lock", "lost", 2, 1, store="redis"),
    ]
    other = [measured("no-lock", "lost", 3, 1, store="mariadb")]
    stores = {pair.subject.store: pair.throughput_ratio for pair in compared(one, other)}
    assert stores == {"": 3, "redis": None}


def test_two_results_are_paired_whatever_they_are_of():
    pause = {"strategy": "token", "verdict": "lost", "hazard": "pause"}
    crash = {"strategy": "setnx", "verdict": "stalled", "hazard": "crash-holding"}
    (pair,) = side_by_side(pause, crash)
    assert pair.subject[:2] == ("token / setnx", "pause / crash-holding")
    assert pair.changed
    (same,) = side_by_side(pause, pause)
    assert (same.subject.strategy, same.changed) == ("token", False)
