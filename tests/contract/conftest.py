"""The arena stands for the whole session: its servers are started once."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.contract.arena import Arena


@pytest.fixture(scope="session")
def arena() -> Iterator[Arena]:
    with ExitStack() as servers:
        yield Arena(servers)
