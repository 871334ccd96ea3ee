"""Workers as processes of one machine: locks on its files exclude, or do not, as they do there."""

from __future__ import annotations

import fcntl
import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fasteners
import portalocker
import pytest
from filelock import FileLock

from lost_update_lab.gates.disk import Files
from lost_update_lab.harness import Harness
from lost_update_lab.model.bounds import Bounds, Fault
from lost_update_lab.model.disk import HeldOnDisk
from lost_update_lab.model.errors import Elsewhere
from lost_update_lab.model.system import UNBROKEN
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.search.search import Search
from lost_update_lab.servers.memoised_disk import MemoisedDisk
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


def of_fasteners(bank: Bank) -> Any:
    """Its class keeps time.sleep as the default of an argument."""
    return fasteners.InterProcessLock("x.lock")


def of_portalocker(bank: Bank) -> Any:
    """Its class keeps fcntl.flock."""
    return portalocker.Lock("x.lock", timeout=300, check_interval=1)


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


@contextmanager
def of_a_link(bank: Bank) -> Iterator[None]:
    mine = f"x.{os.getpid()}"
    Path(mine).write_text("")
    while True:
        try:
            os.link(mine, "x.lock")
            break
        except FileExistsError:
            time.sleep(1)
    yield
    os.unlink("x.lock")


@contextmanager
def of_a_process(bank: Bank) -> Iterator[None]:
    """Takes the file of a dead process away, but not one without a number: its process may have died before it wrote
    that."""
    while True:
        try:
            file = os.open("x.lock", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            if (text := _read("x.lock")) and not _lives(int(text)):
                os.unlink("x.lock")
                continue
            time.sleep(1)
        else:
            os.write(file, str(os.getpid()).encode())
            os.close(file)
            break
    yield
    os.unlink("x.lock")


@contextmanager
def of_a_process_in_haste(bank: Bank) -> Iterator[None]:
    """The file is there before the number is in it, and then it looks like one that a dead process left."""
    while True:
        try:
            with open("x.lock", "x") as file:
                file.write(str(os.getpid()))
            break
        except FileExistsError:
            text = _read("x.lock")
            if text == "" or (text and not _lives(int(text))):
                os.unlink("x.lock")
                continue
            time.sleep(1)
    yield
    os.unlink("x.lock")


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text()
    except FileNotFoundError:
        return None


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def deleted_while_locked(bank: Bank) -> Iterator[None]:
    with open("x.lock", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
        os.unlink("x.lock")


@contextmanager
def taken_again(bank: Bank) -> Iterator[None]:
    """A takes it twice. Who waits for the first file gets one without a name, and A makes another."""
    if os.getpid() % 2:
        with deleted_while_locked(bank):
            pass
    with deleted_while_locked(bank):
        yield


@pytest.mark.deep
@pytest.mark.parametrize(
    ("lock", "quiet", "crash"),
    [
        (looked_for, "lost", "lost"),
        (of_a_library, UNBROKEN, UNBROKEN),
        (of_fasteners, UNBROKEN, UNBROKEN),
        (of_portalocker, UNBROKEN, UNBROKEN),
        (of_the_kernel, UNBROKEN, UNBROKEN),
        (of_posix, UNBROKEN, UNBROKEN),
        (of_a_name, UNBROKEN, "stalled"),
        (of_a_link, UNBROKEN, "stalled"),
        (of_a_process, UNBROKEN, "stalled"),
        (of_a_process_in_haste, "lost", "lost"),
    ],
)
def test_a_lock_on_a_file_is_judged_as_on_one_machine(
    lock: Callable[[Bank], Any], quiet: str, crash: str, explore: On
) -> None:
    result = explore(lock)
    assert (result.cause, result.exhausted) == ("", True)
    assert (result.under(None), result.under(Fault.CRASH)) == (quiet, crash)
    assert result.in_memory > result.schedules / 2


@pytest.mark.deep
@pytest.mark.parametrize(
    "lock", [of_a_library, pytest.param(of_fasteners, marks=pytest.mark.deep), of_portalocker]
)
def test_a_library_that_locks_files_is_not_accused(lock: Callable[[Bank], Any], explore: On) -> None:
    """filelock came out as `lost` without any fault."""
    result = explore(lock, faults=0)
    assert (result.cause, result.exhausted, result.worst) == ("", True, UNBROKEN)


@pytest.mark.deep
def test_a_file_that_is_deleted_while_it_is_locked_is_another_file(explore: On) -> None:
    assert explore(deleted_while_locked, faults=0).worst == UNBROKEN
    assert explore(taken_again, faults=0).worst == "lost"


@pytest.mark.deep
@pytest.mark.parametrize(
    "lock",
    [
        looked_for,
        of_a_process_in_haste,
        of_the_kernel,
    ],
)
def test_executed_each_time_a_search_comes_to_the_same(lock: Callable[[Bank], Any], explore: On) -> None:
    """The referee: real code in each schedule."""
    known, executed = explore(lock), explore(lock, recorded=False, in_memory=False)
    assert known.found.keys() == executed.found.keys()
    assert (known.finals, known.in_memory > 0, executed.in_memory) == (executed.finals, True, 0)


@pytest.mark.deep
def test_a_state_without_what_is_open_would_miss_schedules(
    explore: On, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: by its files alone, a machine on which the lock is held is one on which it is free."""
    known = explore(of_the_kernel)
    monkeypatch.setattr(HeldOnDisk, "contents", lambda held: repr(held.paths).encode())
    forgets = explore(of_the_kernel)
    assert forgets.cause or forgets.states < known.states


@contextmanager
def by_age(bank: Bank) -> Iterator[None]:
    while os.path.exists("x.lock") and time.time() - os.path.getmtime("x.lock") < 30:
        time.sleep(1)
    Path("x.lock").write_text("")
    yield
    os.unlink("x.lock")


@contextmanager
def by_fcntl(bank: Bank) -> Iterator[None]:
    with open("x.lock", "w") as file:
        fcntl.fcntl(file, fcntl.F_SETLKW, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
        yield


@contextmanager
def opened_before(bank: Bank) -> Iterator[None]:
    fcntl.flock(_early.file, fcntl.LOCK_EX)
    yield
    fcntl.flock(_early.file, fcntl.LOCK_UN)


_early = SimpleNamespace(file=None)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    ("lock", "told"),
    [
        (by_fcntl, "it locks a file by fcntl.fcntl"),
        (by_age, "it asks when the file x.lock was changed"),
        (opened_before, "it locks the file early.lock, which was opened before the worker began"),
    ],
)
def test_what_is_not_followed_is_not_judged(lock: Callable[[Bank], Any], told: str, explore: On) -> None:
    with open("early.lock", "w") as _early.file, pytest.raises(Elsewhere) as error:
        explore(lock)
    assert told in str(error.value)
    assert "--one-machine" not in error.value.remedy


@pytest.mark.deep
def test_a_lock_that_a_dead_process_kept_would_be_a_stall(
    explore: On, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: the kernel closes the files of a process that dies; without that a waiter would hang for ever."""
    for disk in Files, MemoisedDisk:
        monkeypatch.setattr(disk, "end_sessions", lambda *_, **__: None)
    assert explore(of_the_kernel).under(Fault.CRASH) == "stalled"
