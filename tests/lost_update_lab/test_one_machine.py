"""Workers as processes of one machine: locks on its files exclude, or do not, as they do there."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from lost_update_lab.gates import disk as files
from lost_update_lab.gates.disk import Files
from lost_update_lab.harness import Harness
from lost_update_lab.model.bounds import Bounds, Fault
from lost_update_lab.model.system import UNBROKEN
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.search.search import Search
from lost_update_lab.servers.postgres.server import PostgresServer
from tests.lost_update_lab.bank import CONTENTS, Bank, locked_by

On = Callable[..., SearchResult]


@pytest.fixture
def explore(explorer_urls: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> On:
    monkeypatch.chdir(tmp_path)

    def search(lock: Any, **bounds: Any) -> SearchResult:
        bank, disk = Bank(locked_by(lock), *explorer_urls), Files()
        postgres = PostgresServer(explorer_urls[0], CONTENTS, False)
        kinds = frozenset({Fault.CRASH, Fault.PAUSE})
        try:
            with Harness(
                bank, [postgres, disk], Bounds(**{"faults": 1, "kinds": kinds, **bounds})
            ) as harness:
                return Search(harness).explore()
        finally:
            disk.close()
            postgres.close()
            bank.admin.close()

    return search


def of_a_library(bank: Bank) -> Any:
    return FileLock("x.lock", poll_interval=1)


@contextmanager
def of_the_kernel(bank: Bank) -> Iterator[None]:
    """Waits in flock itself."""
    with open("x.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def of_posix(bank: Bank) -> Iterator[None]:
    """Belongs to the process: two threads of one would both get it."""
    with open("x.lock", "w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        yield


@contextmanager
def of_a_name(bank: Bank) -> Iterator[None]:
    """No worker takes it away from a dead holder."""
    while True:
        try:
            os.close(os.open("x.lock", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            break
        except FileExistsError:
            time.sleep(1)
    yield
    os.remove("x.lock")


@contextmanager
def looked_for(bank: Bank) -> Iterator[None]:
    """Two may look before one of them makes the file."""
    while os.path.exists("x.lock"):
        time.sleep(1)
    Path("x.lock").write_text("")
    yield
    Path("x.lock").unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("lock", "quiet", "crash"),
    [
        pytest.param(of_a_library, UNBROKEN, UNBROKEN, marks=pytest.mark.deep),
        (of_the_kernel, UNBROKEN, UNBROKEN),
        (of_posix, UNBROKEN, UNBROKEN),
        (of_a_name, UNBROKEN, "stalled"),
        (looked_for, "lost", "lost"),
    ],
)
def test_a_lock_on_a_file_is_judged_as_on_one_machine(
    lock: Callable[[Bank], Any], quiet: str, crash: str, explore: On
) -> None:
    result = explore(lock)
    assert (result.cause, result.exhausted) == ("", True)
    assert (result.under(None), result.under(Fault.CRASH)) == (quiet, crash)


def test_a_library_that_locks_files_is_not_accused(explore: On) -> None:
    """It came out as `lost` without any fault. With faults its search is long: no step on a file is recorded."""
    result = explore(of_a_library, faults=0)
    assert (result.cause, result.exhausted, result.worst) == ("", True, UNBROKEN)


def test_a_lock_that_a_dead_process_kept_would_be_a_stall(
    explore: On, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: the kernel closes the files of a process that dies; without that a waiter would hang for ever."""
    monkeypatch.setattr(files.Files, "end_sessions", lambda *_, **__: None)
    assert explore(of_the_kernel).under(Fault.CRASH) == "stalled"
