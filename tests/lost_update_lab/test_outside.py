"""What a worker uses outside the servers, and what hangs: noticed, reported with its cause, and never a verdict."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from lost_update_lab.model.commands import Op
from lost_update_lab.model.errors import GATE_IT, KEEPS_STATE, SWALLOWS, Elsewhere
from lost_update_lab.model.system import trace_of, words_of
from lost_update_lab.model.workers import Task, WorkerProcess
from lost_update_lab.runs import hang
from lost_update_lab.runs.found import SearchResult
from tests.lost_update_lab.bank import Bank, locked_by

Explore = Callable[..., SearchResult]
_mutex, _free = threading.Lock(), threading.Condition()
_busy: list[Bank] = []
_events: list[threading.Event] = []


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def of_a_library(bank: Bank) -> Any:
    return FileLock("x.lock")


@contextmanager
def of_a_file(bank: Bank) -> Iterator[None]:
    with open("x.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def of_a_file_in_memory(bank: Bank) -> Iterator[None]:
    with open("/dev/shm/lost-update-lab-x.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def of_a_folder(bank: Bank) -> Iterator[None]:
    while True:
        try:
            os.mkdir("x.lock")
            break
        except FileExistsError:
            time.sleep(1)
    yield
    os.rmdir("x.lock")


@contextmanager
def of_another_server(bank: Bank) -> Iterator[None]:
    with socket.create_connection(("127.0.0.1", 9)):
        yield


@contextmanager
def of_this_process(bank: Bank) -> Iterator[None]:
    with _mutex:
        yield


@contextmanager
def of_a_monitor(bank: Bank) -> Iterator[None]:
    """No server is asked: it was kept."""
    with _free:
        while _busy:
            _free.wait()
        _busy.append(bank)
    yield
    with _free:
        _busy.clear()
        _free.notify_all()


@contextmanager
def of_an_event_of_its_holder(bank: Bank) -> Iterator[None]:
    """Right for threads of one process. In another one there is no such event, and a waiter goes in: it was kept."""
    mine = bank.redis.set("lock", 1, nx=True)
    if mine:
        _events.append(threading.Event())
    elif _events:
        _events[0].wait(10)
    yield
    if mine:
        bank.redis.delete("lock")
        _events.pop().set()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("lock", "told"),
    [
        (of_a_library, "x.lock"),
        (of_a_file, "it opens the file x.lock for writing"),
        (of_a_file_in_memory, "it opens the file /dev/shm/lost-update-lab-x.lock for writing"),
        (of_a_folder, "it changes (os.mkdir) the file x.lock"),
        (of_another_server, "it talks to 127.0.0.1:9"),
        (of_this_process, "it waits for a lock inside of this process (test_outside.py, line "),
        (of_a_monitor, "it waits for a lock inside of this process (test_outside.py, line "),
        (of_an_event_of_its_holder, "it waits for a lock inside of this process (test_outside.py, line "),
    ],
)
def test_what_workers_do_not_share_is_no_verdict(
    lock: Callable[[Bank], Any], told: str, explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hang, "STANDS_WITHIN", 1.0)
    with pytest.raises(Elsewhere) as error:
        explore(locked_by(lock))
    assert told in str(error.value)


@pytest.mark.usefixtures("folder")
def test_a_file_that_is_only_read_or_logged_to_is_no_lock(explore: Explore) -> None:
    Path("settings").write_text("1")
    log = logging.getLogger(__name__)
    handler = logging.FileHandler("log", delay=True)
    log.addHandler(handler)

    def reads(bank: Bank, amount: int) -> str:
        log.warning(Path("settings").read_text())
        with open(os.devnull, "w") as nothing:
            nothing.write("x")
        return "ok"

    try:
        assert explore(reads).cause == ""
    finally:
        log.removeHandler(handler)
        handler.close()


@pytest.mark.deep
def test_a_thread_that_hangs_is_reported_with_its_traceback(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hang, "STANDS_WITHIN", 1.0)

    def hangs(bank: Bank, amount: int) -> str:
        ours, _theirs = socket.socketpair()
        ours.recv(1)
        return "ok"

    result = explore(hangs)
    assert "A waits in something that the explorer does not see: test_outside.py" in result.cause
    assert "ours.recv(1)" in result.trace
    assert result.remedy != GATE_IT  # there is no client


def test_a_server_that_does_not_answer_is_named_with_its_command() -> None:
    """The lock was told to wait in a client with a gate, and stood in one."""
    names: dict[str, Any] = {"over": threading.Event()}
    exec(compile("def stand(): over.wait()", os.path.join(hang._HERE, "gates", "a_gate.py"), "exec"), names)
    thread = threading.Thread(target=names["stand"])
    thread.start()
    while not hang._in_a_gate(thread):
        pass
    busy = Op("redis", "EVAL while true do end 0", b"EVAL")
    told = hang.hang(Task("A", WorkerProcess("A", 0), main=True, thread=thread, op=busy))
    names["over"].set()
    assert (
        str(told) == "A waits for the answer to EVAL while true do end 0, and redis has given none for 20 s"
    )
    assert told.remedy == hang.BUSY


def test_a_thread_that_waits_for_a_processor_does_not_hang() -> None:
    """On a busy machine it gets none for seconds. One that sleeps in its own code hangs."""
    over, much = threading.Event(), bytes(10**7)

    def computes() -> None:
        while not over.is_set():
            hashlib.sha256(much)

    busy, asleep = (threading.Thread(target=each) for each in (computes, over.wait))
    for thread in (busy, asleep):
        thread.start()
    while not hang._waits_for_a_processor(busy) or "futex" not in hang._waits_in(asleep):
        pass
    found = hang._waits_for_a_processor(asleep)
    over.set()
    assert not found


def test_a_thread_at_a_breakpoint_does_not_hang() -> None:
    """A debugger's frame is on the stack of the thread, by the name of its module."""
    over, found = threading.Event(), []
    for module in ("pdb", "shop"):
        names: dict[str, Any] = {"__name__": module, "over": over}
        exec("def stand(): over.wait()", names)
        thread = threading.Thread(target=names["stand"])
        thread.start()
        while not any("stand" in frame.name for frame in hang._frames(thread)):
            pass
        found.append(hang.in_a_debugger(thread))
    over.set()
    assert found == [True, False]


@pytest.mark.deep
def test_the_budget_bounds_real_time_whatever_is_done_in_it(explore: Explore) -> None:
    until, over = time.monotonic() + 20, list[bool]()

    def busy(bank: Bank, amount: int) -> str:
        while not over:
            sum(range(1000))
        return "ok"

    result = explore(busy, budget=2)
    over.append(True)
    assert "the budget of 2 s ended: A was in its own code for" in result.cause
    assert "sum(range(1000))" in result.trace
    assert result.remedy == hang.TURNS
    assert time.monotonic() < until


def _keeps(function: Callable[[float], None]) -> Iterator[Callable[[float], None]]:
    """In a generator that stands: nobody can replace it there."""
    while True:
        yield function


_kept = _keeps(time.sleep)
next(_kept)


def test_a_sleep_that_passes_no_gate_is_told_as_one(explore: Explore) -> None:
    """Each is short, so the thread sends news again and again: only the budget would have ended it."""
    over = list[bool]()

    def waits(bank: Bank, amount: int) -> str:
        while not over:
            next(_kept)(0.1)
        return "ok"

    result = explore(waits, budget=60)
    over.append(True)
    assert "A waits in real time (test_outside.py, line " in result.cause
    assert "next(_kept)(0.1)" in result.trace
    assert result.remedy == hang.BY_THE_MODULE


@pytest.mark.deep
def test_workers_cannot_be_told_apart_by_what_processes_have_in_common(explore: Explore) -> None:
    """Two processes of a server have a main thread each, of the same name, and after a fork of the same number."""

    @contextmanager
    def by_thread(bank: Bank) -> Iterator[None]:
        thread = threading.current_thread()
        me = f"{thread.name} {thread.ident} {threading.get_ident()}"
        while not (bank.redis.set("lock", me, nx=True) or bank.redis.get("lock") == me.encode()):
            time.sleep(1)
        yield
        bank.redis.delete("lock")

    assert explore(locked_by(by_thread)).worst == "lost"


def test_a_thread_that_swallows_its_end_is_reported_in_a_line(
    explore: Explore, caplog: pytest.LogCaptureFixture
) -> None:
    def swallows(bank: Bank, amount: int) -> str:
        while True:
            try:
                if bank.redis.set("lock", "x", nx=True):
                    return "ok"
                time.sleep(1)
            except BaseException:
                logging.getLogger(__name__).exception("not yet")

    result = explore(swallows)
    assert "catches BaseException and goes on (test_outside.py, line " in result.cause
    assert result.remedy == SWALLOWS
    assert caplog.text == ""


_calls: list[int] = []


def test_state_that_survives_a_schedule_is_reported_in_those_words(explore: Explore) -> None:
    @contextmanager
    def counted(bank: Bank) -> Iterator[None]:
        _calls.append(1)
        while not bank.redis.set("lock", f"owner-{len(_calls)}", nx=True, px=10_000):
            time.sleep(1)
        yield
        bank.redis.delete("lock")

    result = explore(locked_by(counted), faults=1)
    assert "keeps state that survives a schedule" in result.cause
    assert result.remedy == KEEPS_STATE


def test_an_error_keeps_the_places_that_it_came_through() -> None:
    def raises() -> None:
        raise KeyError("x")

    try:
        raises()
    except KeyError as error:
        kept = words_of(error)
    assert kept.__traceback__ is None
    assert [place.name for place in trace_of(kept)][-1] == "raises"
