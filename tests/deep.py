"""Two kinds of tests take long. `make test` leaves them to `make test-deep` and names each of them at its end.

    whole_command    runs a command of the lab from beginning to end. It needs a whole core: two sessions side by side
    deep             a long search, measurement or tour, of which `make test` has a smaller one. Sessions side by side

`make test-deep SHORT=1` is for CI: all whole commands, and of each deep test the first parameters. It names the rest.
Loaded by `-p tests.deep` (pyproject.toml). Without `-m` pytest runs all tests (docs/decisions/0016).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import pytest

COMMANDS, DEEP = "whole_command", "deep"
#: what `make test` gives to pytest's -m
WITHOUT = f"not {COMMANDS} and not {DEEP}"
SHORT = "--short"
LEFT_OUT = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        SHORT, action="store_true", help=f"of each test marked {DEEP}, only the first parameters"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{COMMANDS}: runs a whole command of the lab: `make test-deep`")
    config.addinivalue_line("markers", f"{DEEP}: takes long, and has a smaller sibling: `make test-deep`")
    config.stash[LEFT_OUT] = []


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption(SHORT):
        return
    seen: set[str] = set()
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        function, deep = item.nodeid.partition("[")[0], item.get_closest_marker(DEEP)
        (left if deep and function in seen else kept).append(item)
        if deep:
            seen.add(function)
    items[:] = kept
    config.hook.pytest_deselected(items=left)


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    for item in items:
        wanted = item.config.option.markexpr
        long = item.get_closest_marker(DEEP) or (item.get_closest_marker(COMMANDS) and wanted == WITHOUT)
        if long and wanted in (WITHOUT, DEEP):
            item.config.stash[LEFT_OUT].append(item.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of `-n 5` tells the process that writes the summary."""
    if (told := getattr(session.config, "workeroutput", None)) is not None:
        told["left_out"] = session.config.stash[LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Each worker collects all tests, so any of them has the whole list."""
    if told := getattr(node, "workeroutput", {}).get("left_out"):
        node.config.stash[LEFT_OUT] = told


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> Generator[None]:
    yield
    left_out = config.stash[LEFT_OUT]
    if not left_out:
        return
    terminalreporter.stats.setdefault("deselected", left_out)  # the workers deselect where no session counts
    terminalreporter.section("not run here")
    for name in left_out:
        terminalreporter.write_line(f"NOT RUN {name}")
    terminalreporter.write_line(f"{len(left_out)} long tests not run here: make test-deep")
