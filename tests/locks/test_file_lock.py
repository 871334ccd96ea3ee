"""file-lock: its file in a directory that others clean, and one that cannot be opened."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import portalocker
import pytest

from locks import file_lock, timing
from locks.errors import LockUnavailable
from locks.file_lock import FileLock

from .interrupts import interrupted


def test_a_file_that_is_deleted_before_it_is_locked_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next caller would lock a new one: two would be inside."""
    lock, other = (FileLock("x", directory=tmp_path) for _ in range(2))
    locks_it = portalocker.Lock.acquire

    def cleaned_meanwhile(self: Any, *args: Any, **options: Any) -> Any:
        monkeypatch.undo()
        handle = locks_it(self, *args, **options)
        lock.path.unlink()
        return handle

    monkeypatch.setattr(portalocker.Lock, "acquire", cleaned_meanwhile)
    assert lock.acquire(timeout=0)
    assert not other.acquire(timeout=0)
    lock.release()
    assert other.acquire(timeout=0)
    other.release()


def test_a_file_is_young_while_it_is_held(tmp_path: Path) -> None:
    """Cleaners of temporary files go by age, not by locks."""
    lock = FileLock("x", directory=tmp_path)
    with lock:
        pass
    os.utime(lock.path, (0, 0))
    with lock:
        assert lock.path.stat().st_mtime > time.time() - 3600


def test_a_file_that_cannot_be_opened_is_reported(tmp_path: Path) -> None:
    lock = FileLock("x", directory=tmp_path)
    lock.path.mkdir()
    with pytest.raises(LockUnavailable, match="cannot be locked"):
        lock.acquire(timeout=0)


def test_an_interrupted_acquire_leaves_nothing_locked(tmp_path: Path) -> None:
    """At whatever step. It has no lease to end it: the file stayed locked as long as the object was there."""
    step = 1
    lock, other = (FileLock("x", directory=tmp_path) for _ in range(2))
    while interrupted(step, lambda: lock.acquire(timeout=0), file_lock, timing):
        assert not lock.held, f"step {step}"
        assert other.acquire(timeout=0), f"step {step}"
        other.release()
        step += 1
    assert step > 20
    assert lock.held
    lock.release()
