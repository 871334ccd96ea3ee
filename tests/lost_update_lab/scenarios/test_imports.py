"""Operations that import a module when they are first called."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from lost_update_lab import Result

Trial = Callable[..., Result]
#: what a module may do that has a gate, while it is loaded
LATE = "import threading, time\nSTARTED = time.time()\nLOCK = threading.Condition()\ntime.sleep(0)\n"


def by_statement(redis: Any) -> None:
    import late_module  # type: ignore[import-not-found]

    assert late_module.STARTED
    redis.set("count", int(redis.get("count") or 0) + 1)


def by_name(redis: Any) -> None:
    assert import_module("late_module").STARTED
    redis.set("count", int(redis.get("count") or 0) + 1)


@pytest.mark.parametrize("operation", [by_statement, by_name])
def test_a_module_that_reads_the_clock_when_it_is_loaded(
    trial: Trial, operation: Callable[[Any], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "late_module.py").write_text(LATE)
    monkeypatch.syspath_prepend(tmp_path)
    try:
        assert trial([operation, operation]).verdict == "violated"
    finally:
        sys.modules.pop("late_module", None)
