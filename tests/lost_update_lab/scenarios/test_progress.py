"""How much of a search is left: an estimate that ends at all of it, and a line that leaves nothing behind."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lost_update_lab import Result
from lost_update_lab.scenarios import progress
from lost_update_lab.scenarios.progress import SearchProgress, share_of, shown
from tests.lost_update_lab.scenarios.shop import one_voucher, redeem
from tests.lost_update_lab.scenarios.test_explore import both


@pytest.mark.parametrize(
    ("path", "share"),
    [
        ([], 1),
        ([(0, 0)], 1),
        ([(0, 1)], 0.5),
        ([(1, 1)], 1),
        ([(0, 1), (0, 1)], 0.25),
        ([(1, 3), (0, 1)], 0.375),
    ],
)
def test_a_path_in_a_tree_of_equal_parts(path: list[tuple[int, int]], share: float) -> None:
    assert share_of(path) == share


@pytest.mark.deep
def test_the_estimate_ends_at_all(trial: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[SearchProgress] = []

    @contextmanager
    def everything() -> Iterator[Any]:
        yield told.append

    monkeypatch.setattr(importlib.import_module("lost_update_lab.scenarios.explore"), "shown", everything)
    monkeypatch.setattr(progress, "EVERY", 0)
    result = trial(both(redeem), setup=one_voucher, crashes=1, control=False)
    assert told[-1].schedules == result.schedules
    assert told[0].share < 0.5
    assert told[-1].share == pytest.approx(1)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_on_a_terminal_only() -> None:
    with shown(out := Terminal()) as tell:
        assert tell
        tell(SearchProgress("voucher", 12, 0.5, 1.0))
    assert "about 50% of the search, 12 schedules" in out.getvalue()
    assert out.getvalue().endswith(progress.CLEAR)
    with shown(io.StringIO()) as tell:
        assert tell is None
