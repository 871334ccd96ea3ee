"""Two kinds of tests take long. `make test` leaves them to `make test-deep` and names each of them at its end.

    whole_command    runs a command of the lab from beginning to end. It needs about a core: three sessions side by side
    deep             a long search, measurement or tour; of most `make test` has a smaller one. Sessions side by side
    deep_after(n)    the same, for all but the first n parameters of the test

`make test-deep SHORT=1` is for CI: the first deep test of each folder, and of each file that `make test` leaves out
whole, unless `make test` runs that test with other parameters; and the first whole command of each file. It takes none
that is marked `deep(short=False)`: those take more than about ten CPU-seconds. It names the rest.
Loaded by `-p tests.deep` (pyproject.toml). Without `-m` pytest runs all tests (docs/decisions/0016).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

COMMANDS, DEEP, AFTER = "whole_command", "deep", "deep_after"
#: what `make test` gives to pytest's -m
WITHOUT = f"not {COMMANDS} and not {DEEP}"
SHORT = "--short"
LEFT_OUT = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        SHORT,
        action="store_true",
        help=f"of the tests marked {DEEP}, only the first of each folder; of those marked {COMMANDS}, of each file",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{COMMANDS}: runs a whole command of the lab: `make test-deep`")
    config.addinivalue_line("markers", f"{DEEP}: takes long; most have a smaller sibling: `make test-deep`")
    config.addinivalue_line("markers", f"{AFTER}(n): {DEEP}, but for its first n parameters")
    config.stash[LEFT_OUT] = []


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A session of one kind does not import a file that names no test of that kind. Each session of `-n 4` would
    import and collect all of them: 16 CPU-seconds."""
    kind = config.option.markexpr
    if kind not in (DEEP, COMMANDS) or not collection_path.match("test_*.py"):
        return None
    return kind not in _text(collection_path) or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    _mark_the_later_ones(items)
    _refuse_marks_from_elsewhere(items)
    if not config.getoption(SHORT):
        return
    kept, left = _short(items)
    items[:] = kept
    config.hook.pytest_deselected(items=left)


def _short(items: Sequence[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Those of the short form, and those that it leaves out."""
    quick = [item for item in items if _kind(item) is None]
    functions, files = set(map(_function, quick)), {item.path for item in quick}
    kept, left, seen = list[pytest.Item](), list[pytest.Item](), set[tuple[str, Path]]()
    for item in items:
        if (mark := _kind(item)) is None:
            kept.append(item)
            continue
        place = (mark.name, item.path.parent if mark.name == DEEP and item.path in files else item.path)
        is_short = mark.kwargs.get("short", True) and _function(item) not in functions
        (kept if is_short and place not in seen else left).append(item)
        if is_short:
            seen.add(place)
    return kept, left


def _kind(item: pytest.Item) -> pytest.Mark | None:
    return next(filter(None, map(item.get_closest_marker, (DEEP, COMMANDS))), None)


def _mark_the_later_ones(items: Sequence[pytest.Item]) -> None:
    """Parameters that are marked one by one do not count."""
    met: Counter[str] = Counter()
    for item in items:
        if (after := item.get_closest_marker(AFTER)) and not item.get_closest_marker(DEEP):
            met[_function(item)] += 1
            if met[_function(item)] > after.args[0]:
                item.add_marker(DEEP)


def _refuse_marks_from_elsewhere(items: Sequence[pytest.Item]) -> None:
    """A session of one kind would not find them."""
    for item, mark in product(items, (DEEP, COMMANDS)):
        if item.get_closest_marker(mark) and mark not in _text(item.path):
            told = f"{item.nodeid} is marked {mark!r}, which its file does not name"
            raise pytest.UsageError(f"{told}: `make test-deep` would not find it. Mark it in that file")


@cache
def _text(file: Path) -> str:
    return file.read_text()


def _function(item: pytest.Item) -> str:
    """The test without its parameters."""
    return item.nodeid.partition("[")[0]


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    for item in items:
        wanted = item.config.option.markexpr
        left_out = {WITHOUT: (DEEP, COMMANDS), DEEP: (DEEP,), COMMANDS: (COMMANDS,)}.get(wanted, ())
        if any(item.get_closest_marker(mark) for mark in left_out):
            item.config.stash[LEFT_OUT].append(item.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of `-n 4` tells the process that writes the summary."""
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
