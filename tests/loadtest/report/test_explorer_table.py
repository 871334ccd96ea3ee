"""What an exploration found can be read on a terminal of 80 columns."""

import io

import pytest
from rich.console import Console

from ledger.strategies import STRATEGIES
from loadtest.findings.explored import HAZARD_OF
from loadtest.report.console import show
from loadtest.report.explorer_table import SHORT, tables

HEADS = [SHORT[str(each)] for each in HAZARD_OF.values()]


def printed(width: int) -> list[str]:
    under = {str(each): "lost" for each in HAZARD_OF.values()}
    results = [
        {
            "strategy": slug,
            "verdict": "inconclusive",
            "not_applicable": {"clock-jump": "why"},
            "under": under | {"crash-holding": "inconclusive"},
            "claims": ["pause"],
            "schedules": 123_456,
            "exhausted": False,
            "cut_short": "the budget",
        }
        for slug in STRATEGIES
    ]
    out = io.StringIO()
    show(Console(file=out, width=width), tables(results, width), [])
    return [line.rstrip() for line in out.getvalue().splitlines()]


@pytest.mark.parametrize(("width", "lost", "at_odds"), [(80, "L", "L!"), (200, "lost", "lost!")])
def test_no_name_and_no_figure_is_cut(width: int, lost: str, at_odds: str) -> None:
    lines = printed(width)
    assert max(map(len, lines)) <= width
    assert not any("…" in line for line in lines)
    row = next(line for line in lines if line.startswith("token "))
    assert row.split() == [
        "token",
        "inconclusive",
        lost,
        "?",
        at_odds,
        *[lost] * 4,
        "·",
        "123,456",
        "cut",
        "short",
    ]
    assert [each for each in HEADS if each not in " ".join(lines)] == []
