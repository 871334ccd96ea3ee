"""The gates of threads: a thread that a worker starts belongs to it, and waits in virtual time."""

from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import Any

from lost_update_lab.gates import one_process
from lost_update_lab.gates.patch import Patches
from lost_update_lab.model.effects import ASKED, START
from lost_update_lab.model.workers import Halt, halt
from lost_update_lab.runs.executed import noting
from lost_update_lab.runs.place import Here, anywhere, attach, beside, here, is_of_a_worker
from lost_update_lab.schedule import pending
from lost_update_lab.telling.lines import is_own

_start, _join, _is_alive = threading.Thread.start, threading.Thread.join, threading.Thread.is_alive
_wait, _notify, _notify_all = (
    threading.Condition.wait,
    threading.Condition.notify,
    threading.Condition.notify_all,
)
_is_set, _wait_for = threading.Event.is_set, threading.Event.wait
_get_ident, _acquire = threading.get_ident, threading.Semaphore.acquire
#: the number of a worker's main thread, as its own code sees it
MAIN_NUMBER = 140_000_000_000_000


def start(thread: threading.Thread) -> None:
    place = here()
    if place is None:
        return _start(thread)
    worker, run = place.task.worker, place.run
    if run.ending:
        halt(place.task)
    again = place.task.beside and does(thread) is does(place.task.thread)
    task = run.new_thread(worker)
    task.thread, task.after = thread, place.task.number if again else None
    if run.recorder:
        run.recorder.effect(place.task, START, again)
    body = thread.run

    def gated() -> None:
        attach(Here(run, task))
        task.go.acquire()
        try:
            if not run.ending:
                pending.hear(run, task, task.heard)
                with noting():
                    body()
        except (Halt, Exception):  # noqa: BLE001, S110  (its last step tells why it ended)
            pass
        finally:
            run.finished(task)
            attach(None)

    thread.run = gated  # type: ignore[method-assign]
    with beside():
        return _start(thread)


def does(thread: Any) -> object:
    """The code that it runs. That of a Timer is its function."""
    named = getattr(thread, "function", None) or getattr(thread, "_target", None) or type(thread).run
    return getattr(getattr(named, "__func__", named), "__code__", named)


def join(thread: threading.Thread, timeout: float | None = None) -> None:
    place = here()
    if place is None:
        return _join(thread, timeout)
    for task in place.task.worker.tasks:
        if task.thread is thread and task.alive:
            place.run.wait(place.task, task, timeout, "join a thread")
    return None


def is_alive(thread: threading.Thread) -> bool:
    """A thread that a fault has ended stands still until the run is over, but it counts as dead."""
    place = anywhere()
    own = place.task.worker.tasks if place else ()
    return _asked(all(task.alive for task in own if task.thread is thread) and _is_alive(thread))


def _asked(found: bool) -> bool:
    """What a thread finds out about others of its worker is a part of what it was told."""
    place = here()
    if place and len(place.task.worker.tasks) > 1:
        told = b"asked", b"%d" % found
        place.task.history.add(*told)
        if place.run.recorder:
            place.run.recorder.effect(place.task, ASKED, *told)
    return found


def is_set(event: threading.Event) -> bool:
    return _asked(_is_set(event))


def wait_for(event: threading.Event, timeout: float | None = None) -> bool:
    """One that waits is told by what wakes it."""
    return _asked(True) if here() and _is_set(event) else _wait_for(event, timeout)


def wait(condition: threading.Condition, timeout: float | None = None) -> bool:
    place = here()
    if place is None:
        return _wait(condition, timeout)
    inner: Any = condition
    if not inner._is_owned():
        raise RuntimeError("cannot wait on un-acquired lock")
    one_process.waits_for(place, condition)
    saved = inner._release_save()
    try:
        text = "wait" if timeout is None else f"wait {timeout:g} s"
        return place.run.wait(place.task, condition, timeout, text)
    finally:
        inner._acquire_restore(saved)


def _woken(place: Here, condition: threading.Condition, count: int | None) -> None:
    woken = place.run.notify(condition, count)
    one_process.tells(place, condition, woken)
    if place.run.recorder and not place.run.ending:
        place.run.recorder.notified(place.task, condition, count)


def notify(condition: threading.Condition, n: int = 1) -> None:
    _notify(condition, n)
    if place := anywhere():
        _woken(place, condition, n)


def notify_all(condition: threading.Condition) -> None:
    _notify_all(condition)
    if place := anywhere():
        _woken(place, condition, None)


def acquire(semaphore: threading.Semaphore, blocking: bool = True, timeout: float | None = None) -> bool:
    """A thread that only tries finds out what other threads of its worker have done, and no gate tells: a pool asks in
    this way whether it needs one more thread."""
    place = here()
    if place and place.run.recorder and (not blocking or timeout == 0):
        place.run.recorder.opaque("threads of a worker that meet in a semaphore")
    return _acquire(semaphore, blocking, timeout)


def get_ident() -> int:
    """Forked processes have main threads of the same number, so a lock cannot tell its holders apart by it. Libraries
    get the real one, and are not stopped: they keep a client for each thread by it, some of them under a lock."""
    place = _asked_by_own_code()
    return _get_ident() if place is None else MAIN_NUMBER + place.task.number


def ident(thread: Any) -> int | None:
    """The same of a thread object."""
    place = _asked_by_own_code()
    if place is None:
        return _number_of(thread)
    own = (task for task in place.task.worker.tasks if task.thread is thread)
    return next((MAIN_NUMBER + task.number for task in own), _number_of(thread))


def _asked_by_own_code() -> Here | None:
    """The place of the worker whose code has called the caller of this function, be it by code that was generated for
    it (a dataclass's __init__). None: a library has, or no worker."""
    if not is_of_a_worker():
        return None
    frame: FrameType | None = sys._getframe(2)
    while frame and frame.f_code.co_filename.startswith("<"):
        frame = frame.f_back
    return anywhere() if frame and is_own(frame.f_code.co_filename) else None


def _number_of(thread: Any) -> int | None:
    number: int | None = thread._ident
    return number


def _unraisable(known: Any) -> Any:
    """A finalizer that would send something after its thread's end is stopped too: there is nothing to report."""

    def report(what: Any) -> None:
        if not isinstance(what.exc_value, Halt):
            known(what)

    return report


def install(patches: Patches) -> None:
    one_process.install(patches)
    patches.method(sys, "unraisablehook", _unraisable(sys.unraisablehook))
    patches.everywhere(_get_ident, get_ident)
    patches.method(threading.Thread, "ident", property(ident))
    patches.method(threading.Thread, "start", start)
    patches.method(threading.Thread, "join", join)
    patches.method(threading.Thread, "is_alive", is_alive)
    patches.method(threading.Event, "is_set", is_set)
    patches.method(threading.Event, "wait", wait_for)
    patches.method(threading.Semaphore, "acquire", acquire)
    patches.method(threading.Condition, "wait", wait)
    patches.method(threading.Condition, "notify", notify)
    patches.method(threading.Condition, "notify_all", notify_all)
    patches.method(threading.Condition, "notifyAll", notify_all)
