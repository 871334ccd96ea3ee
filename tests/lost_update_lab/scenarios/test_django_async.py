"""Django's asynchronous ORM (aget, asave, aupdate), in a project of its own."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess

import pytest


@pytest.mark.deep
def test_the_asynchronous_orm(project: Callable[..., CompletedProcess[str]]) -> None:
    done = project("django_async.py")
    told = done.stdout.splitlines()
    assert told == [
        "withdraw violated True",
        "withdraw_in_place kept True",
        "withdraw_in_a_task violated True",
    ], done.stderr
