"""A thread whose turn it is, and which sends no news: where it stands, and what it waits for.

A thread that waits for its server stands in a gate and has time: the machine may be busy. So has one that computes, or
that waits for a processor: only the processor time that it takes counts. A thread that sleeps in its own code waits for
something that no gate sees. None of this decides a verdict: it ends a search, which then proves nothing.
"""

from __future__ import annotations

import asyncio
import os
import sys
import sysconfig
import threading
import time
import traceback
from collections.abc import Sequence
from math import inf
from pathlib import Path

from lost_update_lab.model.errors import GATE_IT, MORE_TIME, REPORT_IT, SWALLOWS, Broken, Elsewhere
from lost_update_lab.model.workers import Task
from lost_update_lab.runs.one_owner import OF_ITS_OWN, SHARED
from lost_update_lab.telling.narrative import shortened

#: seconds without news from a thread in a gate, at least, and as a share of the budget; of processor time from one at
#: work; and from one that sleeps in its own code
NEWS_WITHIN, SHARE, STANDS_WITHIN = 20.0, 1 / 3, 3.0
#: seconds without news after which the end of the budget is the fault of the thread whose turn it is; and, if that
#: thread waits for the answer to a command, of the command, at most
INSIDE, UNANSWERED_WITHIN = 1.0, 3.0
#: … and from one that is known to hang, when its run is over
HUNG_WITHIN = 0.2
DEBUGGERS = frozenset({"bdb", "pdb", "ipdb", "debugpy", "pydevd", "_pydevd_bundle"})
#: how many frames of its traceback are shown
SHOWN = 8
#: how many characters of a command that is not answered
SHOWN_OF_IT = 80
CLIENTS = (
    "redis" + os.sep,
    "psycopg" + os.sep,
    "psycopg_pool" + os.sep,
    "pymysql" + os.sep,
    "aiomysql" + os.sep,
    "django" + os.sep,
    "sqlalchemy" + os.sep,
)
#: … and those whose connections have a lock, which one thread holds while its command is under way
LOCKED = "redis" + os.sep, "psycopg" + os.sep
#: what a thread waits for in a client
WAITS_FOR = {
    "psycopg": "an answer of PostgreSQL",
    "psycopg_pool": "a connection of its pool",
    "pymysql": "an answer of MariaDB",
    "redis": "an answer of Redis",
}
_HERE = str(Path(__file__).parents[1])
_STANDARD = sysconfig.get_paths()["stdlib"]
TURNS = (
    "look at the trace: there the code goes on without a command, a sleep or a wait, so no other worker gets its turn. "
    "Only if it ends by itself, give it more time: --budget SECONDS"
)
KEPT = "{who} waits in real time ({place}), through a time.sleep that was saved before the explorer started"
BY_THE_MODULE = "call time.sleep itself where it waits, and keep it in no object beforehand"
LET_GO = (
    "let it wait by time.sleep, by threading, or in a client with a gate (docs/explorer.md, 'Other clients')"
)
PROCESSES = (
    "it waits for a lock inside of this process ({place}): workers stand for processes, which share none"
)
OF_COROUTINES = (
    "let the coroutine wait in something that has a gate: asyncio.sleep, psycopg's AsyncConnection, redis.asyncio, a "
    "thread of asyncio.to_thread; or call the synchronous client"
)
_ASYNCIO = os.path.dirname(asyncio.__file__)
UNSEEN = "{who} waits in something that the explorer does not see: {place}{inside}"
UNANSWERED = "{when}{who} waits for the answer to {command}, and {server} has given none for {seconds:.0f} s"
BUSY = (
    "look at that command: it keeps its server busy, or waits for something there that the explorer does not see. Only "
    "if it ends by itself, give it more time: --budget SECONDS"
)
SWALLOWED = (
    "{who} catches BaseException and goes on ({place}): a worker that has crashed cannot be stopped so"
)


class Watchdog:
    """Asked again and again while there is no news. `budget`: of the search, in seconds."""

    def __init__(self, budget: float | None = None) -> None:
        self.news, self.since, self.used = -1, 0.0, 0.0
        self.answers_within = max(NEWS_WITHIN, SHARE * (budget or 0.0))

    def look(self, news: int, task: Task | None, now: float) -> Broken | None:
        """The error, once it is certain. `news` grows with each sign of life. `task`: the one whose turn it is."""
        thread = task.thread if task else None
        used = _used(thread) if thread else 0.0
        if task and "nanosleep" in _waits_in(thread) and not _in_a_gate(thread):
            place = _placed(_frames(thread))[3]
            return Broken(KEPT.format(who=task.name, place=place), BY_THE_MODULE, trace=_told(thread))
        if news != self.news or in_a_debugger(thread):
            self.news, self.since, self.used = news, now, used
            return None
        silent, computed = now - self.since, used - self.used
        if thread is None or _in_a_gate(thread):
            over = silent >= self.answers_within
        else:
            stands = computed < 0.01 and not _waits_for_a_processor(thread)
            over = (stands and silent >= STANDS_WITHIN) or computed >= NEWS_WITHIN
        return hang(task, silent) if over else None


def out_of_time(task: Task | None, budget: float | None, since: float) -> Broken:
    """The error to raise when the budget has ended inside of a schedule. `since`: seconds without news."""
    told = f"the budget of {budget:g} s ended"
    if task and since >= min(UNANSWERED_WITHIN, SHARE * (budget or inf)) and _asks_in_vain(task):
        return _unanswered(task, since, f"{told}: ")
    if task is None or not task.thread or since < INSIDE or _in_a_gate(task.thread):
        return Broken(told, MORE_TIME)
    place = _placed(_frames(task.thread))[3]
    trace = _told(task.thread)
    return Broken(f"{told}: {task.name} was in its own code for {since:.0f} s ({place})", TURNS, trace)


def hang(task: Task | None, silent: float = NEWS_WITHIN) -> Broken:
    """The error to raise, with the traceback of the thread that hangs. `silent`: seconds without news."""
    frames = _frames(task.thread) if task else []
    if task is None or not frames:
        return Broken("nothing is heard of any worker", REPORT_IT)
    inner, own, inside, place = _placed(frames)
    trace = _told(task.thread)
    if _asks_in_vain(task):
        return _unanswered(task, silent)
    if "futex" in _waits_in(task.thread) and inner is own:
        return Elsewhere(PROCESSES.format(place=place), trace=trace)
    if "futex" in _waits_in(task.thread) and _is_of(inner.filename, LOCKED):
        return Broken(SHARED.format(what=f"or client, ({place}{inside})"), OF_ITS_OWN, trace=trace)
    remedy = GATE_IT if Path(inner.filename).stem in ("socket", "selectors", "ssl", "asyncio") else LET_GO
    if any(frame.filename.startswith(_ASYNCIO) for frame in frames):
        remedy = OF_COROUTINES
    return Broken(UNSEEN.format(who=task.name, place=place, inside=inside), remedy, trace=trace)


def shared(task: Task) -> Elsewhere:
    """The error to raise for a thread that waits, inside of this process, for what another worker does there."""
    return Elsewhere(PROCESSES.format(place=_placed(_frames(task.thread))[3]), trace=_told(task.thread))


def stands(thread: threading.Thread) -> str:
    """Where a thread stands that is no worker's, and what it waits for."""
    if not (frames := _frames(thread)):
        return "nothing is known of where it stands"
    _, own, inside, _ = _placed(frames)
    at = f"at {Path(own.filename).name}:{own.lineno}: {own.line}"
    beyond = frames[frames.index(own) + 1 :]
    packages = [each.filename.partition("-packages" + os.sep)[2].partition(os.sep)[0] for each in beyond]
    if client := next((each for each in reversed(packages) if each in WAITS_FOR), ""):
        return f"it waits for {WAITS_FOR[client]} {at}"
    if "futex" in _waits_in(thread):
        return f"it waits for a lock of this process {at}{inside}"
    return f"it stands {at}{inside}"


def _asks_in_vain(task: Task) -> bool:
    """Does its thread wait for the answer to a command?"""
    return bool(task.op and task.op.server) and _in_a_gate(task.thread)


def _unanswered(task: Task, silent: float, when: str = "") -> Broken:
    """Likewise for a command that has no answer."""
    assert task.op
    where = {
        "when": when,
        "command": shortened(task.op.text, SHOWN_OF_IT),
        "server": task.op.server,
        "seconds": silent,
    }
    return Broken(UNANSWERED.format(who=task.name, **where), BUSY, trace=_told(task.thread))


def swallows(task: Task) -> Broken:
    """The error to raise for a thread that goes on when it is told to end."""
    return Broken(SWALLOWED.format(who=task.name, place=_placed(_frames(task.thread))[3]), SWALLOWS)


def _placed(
    frames: Sequence[traceback.FrameSummary],
) -> tuple[traceback.FrameSummary, traceback.FrameSummary, str, str]:
    """The innermost frame, the innermost of its own code, how the first stands inside of it, and where that is."""
    inner, own = frames[-1], _own(frames)
    inside = "" if inner is own else f", in {inner.name} of {Path(inner.filename).name}"
    return inner, own, inside, f"{Path(own.filename).name}, line {own.lineno}, in {own.name}"


def _told(thread: threading.Thread | None) -> str:
    return "".join(traceback.format_list(_frames(thread)[-SHOWN:]))


def _frames(thread: threading.Thread | None) -> list[traceback.FrameSummary]:
    frame = sys._current_frames().get(thread.ident or 0) if thread else None
    frames = list(traceback.extract_stack(frame)) if frame else []
    first = next((n for n, f in enumerate(frames) if not f.filename.startswith((_HERE, _STANDARD))), 0)
    return frames[first:]


def _own(frames: Sequence[traceback.FrameSummary]) -> traceback.FrameSummary:
    """The innermost frame that is neither Python's, nor the explorer's, nor that of a client with a gate."""
    theirs = [f for f in frames if not f.filename.startswith(_HERE) and not _of_others(f.filename)]
    return theirs[-1] if theirs else frames[-1]


def _of_others(name: str) -> bool:
    return _is_of(name, CLIENTS) or ("-packages" + os.sep not in name and name.startswith(_STANDARD))


def _is_of(name: str, packages: tuple[str, ...]) -> bool:
    """Is it a file of one of these packages?"""
    return name.partition("-packages" + os.sep)[2].startswith(packages)


def _in_a_gate(thread: threading.Thread | None) -> bool:
    return any(frame.filename.startswith(os.path.join(_HERE, "gates")) for frame in _frames(thread))


def in_a_debugger(thread: threading.Thread | None) -> bool:
    """A thread at a breakpoint has all the time of the person in front of it."""
    frame = sys._current_frames().get(thread.ident or 0) if thread else None
    while frame:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in DEBUGGERS:
            return True
        frame = frame.f_back
    return False


def _used(thread: threading.Thread) -> float:
    """Seconds of processor time."""
    try:
        return time.clock_gettime(time.pthread_getcpuclockid(thread.ident or 0))
    except (OSError, AttributeError):  # the thread has ended, or the system has no such clocks
        return time.perf_counter()


def _waits_for_a_processor(thread: threading.Thread) -> bool:
    """Is it ready to go on, on a machine that is busy? Only Linux can tell."""
    try:
        stat = Path(f"/proc/self/task/{thread.native_id}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] == "R"


def _waits_in(thread: threading.Thread | None) -> str:
    """Where in the kernel it waits: futex (a lock of its own process), nanosleep (it sleeps). Only Linux can tell."""
    number = getattr(thread, "native_id", 0)
    try:
        return Path(f"/proc/self/task/{number}/wchan").read_text()
    except OSError:
        return ""
