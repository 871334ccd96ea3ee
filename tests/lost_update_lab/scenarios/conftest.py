"""Scenarios on the explorer's own servers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from lost_update_lab import Result, explore
from tests.lost_update_lab import BUDGET


@pytest.fixture
def trial(scenario_urls: tuple[str, str]) -> Callable[..., Result]:
    """`trial([...], setup=…)`: explore() on them."""
    database, redis = scenario_urls
    return partial(explore, database=database, redis=redis, disposable=True, budget=BUDGET)
