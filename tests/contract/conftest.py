"""The arena stands for the whole session: its servers are started once."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.contract.arena import Arena


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A renewal thread ends with its killed client, or with a lost connection as published: no news here."""
    quiet = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(quiet)


@pytest.fixture(scope="session")
def arena() -> Iterator[Arena]:
    with ExitStack() as servers:
        yield Arena(servers)
