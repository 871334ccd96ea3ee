"""Scenarios on the explorer's own servers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from lost_update_lab import Result, explore


@pytest.fixture
def trial(explorer_urls: tuple[str, str]) -> Callable[..., Result]:
    """`trial([...], setup=…)`: explore() on them."""
    database, redis = explorer_urls
    return partial(explore, database=database, redis=redis, disposable=True)
