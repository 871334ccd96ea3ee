"""A process in which cases run: the museum is a Django project of its own, and pytest's process has the ledger's."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

from museum import lane


@pytest.fixture(scope="module")
def a_lane() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), lane.begin) as lanes:
        yield lanes
