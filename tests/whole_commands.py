"""`make test` leaves the tests marked `whole_command` to `make test-commands`, and says so: how many, and which.

Loaded by `-p tests.whole_commands` (pyproject.toml). Such a test runs a command of the lab from beginning to end, which
computes for long (docs/decisions/0016). Without `-m` pytest runs them too.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import pytest

MARKER = "whole_command"
#: what `make test` and `make test-commands` give to pytest's -m
WITHOUT, ONLY = f"not {MARKER}", MARKER
LEFT_OUT = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARKER}: runs a whole command, for long: `make test-commands`")
    config.stash[LEFT_OUT] = []


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    for item in items:
        if item.config.option.markexpr == WITHOUT and item.get_closest_marker(MARKER):
            item.config.stash[LEFT_OUT].append(item.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of `-n 3` tells the process that writes the summary."""
    if (told := getattr(session.config, "workeroutput", None)) is not None:
        told["left_out"] = session.config.stash[LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Each worker collects all tests: any of them has the whole list."""
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
    terminalreporter.stats.setdefault("deselected", left_out)  # the workers deselect where nobody counts
    terminalreporter.section("not run here")
    for name in left_out:
        terminalreporter.write_line(f"NOT RUN {name}")
    whole = "whole commands, from beginning to end, take long"
    terminalreporter.write_line(f"{len(left_out)} tests not run here ({whole}): make test-commands")
