"""The matrix of hazards can be read on a terminal of any width, and in a file."""

import io
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from rich.console import Console

from ledger.strategies import CARD, STRATEGIES
from loadtest.faults.hazards import ADVERSARIES
from loadtest.report.console import console, show
from loadtest.report.faults_table import tables
from loadtest.verdict.words import STOPPED

WORDS = ("lost", "stalled", "refused", "inconclusive", "kept", "not-run")


def cell(strategy: str, hazard: str, verdict: str, **more: Any) -> dict[str, Any]:
    own = {"strategy": strategy, "hazard": hazard, "verdict": verdict, "claimed": False, "agrees": None}
    return {**own, **more}


def matrix(strategies: Iterable[str], hazards: Iterable[str] = ADVERSARIES) -> list[dict[str, Any]]:
    """Every word, diagonally; an odd one against the claim."""
    pairs = [(s, h) for s in strategies for h in hazards]
    return [cell(s, h, WORDS[n % len(WORDS)], agrees=n % 7 != 0) for n, (s, h) in enumerate(pairs)]


def printed(cells: list[dict[str, Any]], width: int) -> list[str]:
    out = io.StringIO()
    show(Console(file=out, width=width), tables(cells, width), [])
    return [line.rstrip() for line in out.getvalue().splitlines()]


@pytest.mark.parametrize("width", [80, 120, 200])
@pytest.mark.parametrize("strategies", [tuple(STRATEGIES), CARD, CARD[:2]])
def test_no_line_is_too_long_and_no_name_is_broken(strategies: tuple[str, ...], width: int) -> None:
    lines = printed(matrix(strategies), width)
    assert max(map(len, lines)) <= width
    words = set(" ".join(lines).replace(",", " ").split())
    assert set(ADVERSARIES) <= words
    if len(strategies) > len(ADVERSARIES):
        assert set(strategies) <= words


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_whole_matrix_has_one_letter_in_a_cell_under_its_hazards_number(width: int) -> None:
    cells = matrix(STRATEGIES)
    lines = printed(cells, width)
    want = {"lost": "L", "stalled": "S", "refused": "R", "inconclusive": "?", "kept": "k", "not-run": "·"}
    for strategy in ("no-lock", "repeatable-read-innodb-snapshot"):
        shown = [mark for line in lines if line.startswith(f"{strategy} ") for mark in line.split()[1:]]
        own = [each for each in cells if each["strategy"] == strategy]
        assert shown == [want[each["verdict"]] + "!" * (not each["agrees"]) for each in own]
    heads = [n for line in lines if line.startswith("strategy ") for n in line.split()[1:]]
    assert heads == [str(n) for n in range(1, len(ADVERSARIES) + 1)]
    legend = " ".join(lines)
    for number, hazard in enumerate(ADVERSARIES, 1):
        assert f"{number} {hazard}" in legend
    for told in ("L lost", "? inconclusive", "! contradicts the claim"):
        assert told in legend


@pytest.mark.parametrize("width", [80, 200])
def test_the_six_of_the_card_have_words(width: int) -> None:
    lines = printed([cell(s, h, "stalled") for s in CARD for h in ADVERSARIES], width)
    assert lines[-len(ADVERSARIES)].split() == ["crash-holding", *["stalled"] * len(CARD)]


@pytest.mark.parametrize(("strategies", "down"), [(2, "pause"), (9, "lock-1")])
def test_the_longer_side_of_the_matrix_stands_down(strategies: int, down: str) -> None:
    cells = matrix([f"lock-{n}" for n in range(strategies)], ("pause", "failover", "partition"))
    assert down in [line.split()[0] for line in printed(cells, 120) if line]


def test_a_long_name_of_ones_own_is_folded_and_the_cells_stay_whole() -> None:
    mine = "my.company.locks.in.a.very.long.module:and_a_callable_of_a_long_name_too"
    lines = printed(matrix(("no-lock", mine)), 80)
    assert max(map(len, lines)) <= 80
    assert mine in "".join(line.split()[0] for line in lines if "my." in line or "long" in line)


@pytest.mark.parametrize(
    ("more", "sign", "told"),
    [
        ({"verdict": "kept", "claimed": True, "agrees": True}, "K", "K kept, as claimed"),
        ({"verdict": "kept"}, "k", "k kept, not claimed"),
        ({"verdict": "not-run", "reason": STOPPED}, "–", "– stopped before"),
        (
            {"verdict": "not-run", "reason": "no ZooKeeper", "remedy": "install it"},
            "–",
            "– a server is missing",
        ),
        ({"verdict": "not-run", "reason": "it has no lease"}, "·", "· not applicable"),
    ],
)
def test_what_a_letter_says(more: Mapping[str, Any], sign: str, told: str) -> None:
    cells = [*matrix(STRATEGIES, [*ADVERSARIES][:12]), cell("mine", "pause", "lost") | more]
    lines = printed(cells, 80)
    assert [line.split()[1:] for line in lines if line.startswith("mine ")] == [[sign]]
    assert told in " ".join(lines)


def test_a_pipe_is_as_wide_as_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert console(io.StringIO(), 130).width == 130
    monkeypatch.setenv("COLUMNS", "80")
    assert console(io.StringIO(), 130).width == 80
