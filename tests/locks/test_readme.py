"""locks/README.md, run line by line on a real Valkey; and what it names exists."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

from redis import Redis

import locks

PAGE = Path(locks.__file__).parent / "README.md"


def test_the_page(redis_client: Redis) -> None:
    done = doctest.testfile(str(PAGE), module_relative=False, globs={"redis": redis_client})
    assert done.attempted > 5
    assert done.failed == 0


def test_each_lock_and_error_that_it_names_exists() -> None:
    named = re.findall(r"\[`(\w+)`\]\((\w+)\.py\)", PAGE.read_text())
    assert len(named) > 6
    for name, module in named:
        assert name in (Path(locks.__file__).parent / f"{module}.py").read_text()
    for error in re.findall(r"^\| `(Lock\w+)`", PAGE.read_text(), re.MULTILINE):
        assert issubclass(getattr(locks, error), locks.LockError)
