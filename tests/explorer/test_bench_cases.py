"""The cases of `bench explorer`: the explorer is right on each, and a bench without its peer says so."""

from __future__ import annotations

from typing import Any

import pytest

from loadtest.bench import explorer, explorer_table
from loadtest.bench.environments import NotInstalled
from loadtest.bench.explorer_cases import CASES
from loadtest.explorer.options import Kind, Option
from loadtest.explorer.result import Found
from loadtest.explorer.subject import UNBROKEN, Judgement


@pytest.mark.parametrize("name", CASES)
def test_the_explorer_is_right_on_every_case(explorer_urls: tuple[str, str], name: str) -> None:
    row = next(explorer._ours(CASES[name], *explorer_urls))  # the reduced search
    assert (row["verdict"], row["right"]) == (CASES[name].right, True)
    assert row["replayed"] == ("10 of 10" if CASES[name].right == "lost" else "")


def test_a_peer_that_cannot_be_installed_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(*args: Any, **keywords: Any) -> None:
        raise NotInstalled("not installed: no network")

    monkeypatch.setattr(explorer, "environment_for", lacking)
    row = explorer._peer(CASES["no lock"], explorer.QUICK, "", "")
    assert (row["verdict"], row["reason"]) == ("not-run", "not installed: no network")
    ours = {"strategy": "explorer, reduction full", "case": "no lock", "verdict": "lost", "right": True,
            "schedules": 3, "schedules_per_s": 1.0, "steps_per_s": 2.0, "replayed": ""}  # fmt: skip
    other = {**ours, "strategy": "explorer, reduction none", "schedules": 6}
    _, factors, _ = explorer_table.tables([ours, other, row], [])
    assert list(factors.columns[3].cells) == ["2.0"]


@pytest.mark.parametrize(
    ("who", "overlap"), [("AB", True), ("BA", True), ("AABB", False), ("ABAB", True), ("AAB", False)]
)
def test_what_counts_as_overlapping(who: str, overlap: bool) -> None:
    """Operations of one command each overlap at the server's gate; of longer ones, one has to come between."""
    steps = tuple(Option(Kind.STEP, name) for name in who)
    assert Found(Judgement(UNBROKEN), (), (), steps, ()).overlaps(2) is overlap
