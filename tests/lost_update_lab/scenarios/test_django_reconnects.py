"""Django connects again when a fault has cut off its connection. A worker's runs share the second one, too."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

#: more than the explorer and its workers have at a time; these searches lose a connection in hundreds of runs
FEW = 30


@pytest.mark.deep
def test_a_task_that_closes_its_connection(project: Callable[..., CompletedProcess[str]]) -> None:
    """A worker's first run had no old connection, and the next ones had: "not repeatable"."""
    done = project("django_closes.py")
    told = [line.split() for line in done.stdout.splitlines()]
    assert told == [["0", "kept", "True"], ["60", "kept", "True"]], done.stdout + done.stderr


@pytest.mark.deep
def test_a_search_makes_few_sessions(project: Callable[..., CompletedProcess[str]]) -> None:
    done = project("django_reconnects.py")
    told = [line.split() for line in done.stdout.splitlines()]
    assert [line[:2] for line in told] == [["locked", "kept"], ["insists", "violated"]], done.stderr
    assert all(int(made) < FEW for *_, made in told), done.stdout
