"""Outside of pytest-django, as under Django's own test runner, a project that is configured is the one on trial."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

from lost_update_lab.under_test.of_django import HINT


@pytest.mark.deep
def test_a_configured_project_is_found(project: Callable[..., CompletedProcess[str]]) -> None:
    done = project("django_found.py")
    told = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert told["nothing is said"] == "kept True", done.stderr
    assert told["its database"] == "kept True"
    assert "the setup commits nothing" in told["another database"]
    assert told["another database"].endswith(HINT)
    assert told["a test without a mark"] == told["another database"]
