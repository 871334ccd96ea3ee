"""The arena stands for the whole session: its servers are started once."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis

from tests.contract.arena import Arena


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A renewal thread ends with a lost connection, as published: no news here."""
    quiet = pytest.mark.filterwarnings(
        r"ignore:(?s)Exception in thread .*redis\.exceptions\.(Connection|Timeout)Error"
        ":pytest.PytestUnhandledThreadExceptionWarning"
    )
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(quiet)


@pytest.fixture(scope="session", autouse=True)
def killed_clients_are_no_news() -> Iterator[None]:
    """A thread that SystemExit ends, as at the gate of a killed client, ends in silence, as it does without pytest. So
    does a renewal that loses its server while another test runs. To report it there would parse its lines, and Python
    3.11 fails if two threads parse at once (SystemError: AST constructor recursion depth mismatch)."""
    usual = threading.excepthook

    def hook(told: threading.ExceptHookArgs) -> None:
        renews = told.thread is not None and "(_renew)" in told.thread.name
        lost = issubclass(told.exc_type, redis.ConnectionError | redis.TimeoutError)
        if not (issubclass(told.exc_type, SystemExit) or (renews and lost)):
            usual(told)

    threading.excepthook = hook
    yield
    threading.excepthook = usual


@pytest.fixture(scope="session")
def arena() -> Iterator[Arena]:
    with ExitStack() as servers:
        yield Arena(servers)
