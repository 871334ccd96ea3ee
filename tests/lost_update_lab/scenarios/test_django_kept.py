"""What a Django process keeps is each worker's own: the pool of its database, a cache of django-redis, ContentTypes."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess

import pytest


@pytest.mark.deep
@pytest.mark.parametrize("options", [{}, {"pool": True}, {"pool": {"min_size": 1, "max_size": 1}}])
def test_what_a_process_keeps(
    project: Callable[..., CompletedProcess[str]], options: dict[str, object]
) -> None:
    done = project("django_kept.py", OPTIONS=options)
    told = [line.strip() for line in done.stdout.splitlines()]
    assert told == [
        "withdraw violated True",
        "withdraw_locked kept True",
        "count violated True",
        "count_at_once kept True",
        "of_its_type kept True",
    ], done.stderr
    assert "Traceback" not in done.stderr
