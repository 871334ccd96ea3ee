"""What is explored: the workers' code, the opening state, and how a finished run is judged."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from lost_update_lab.model.workers import State, WorkerProcess

#: no law was broken in this schedule. What that is worth, only the judge of the whole search can say
UNBROKEN = "unbroken"
#: among the contents that a judge gets: which keys have a lease, beside the name of each server
LEASES = "leases"
#: … and the leases that ended between two operations (gaps.py), if there are any
GAPS = "gaps"
#: … and whether time has passed in the run, if the judge wants to know
PASSED = "passed"
#: no worker could go on. The engine knows only this word and UNBROKEN of a judge's words
STALLED = "stalled"


#: how many places of an error's traceback are kept
SHOWN = 12


def leased(leases: Mapping[tuple[str, str], int], now: int | None) -> bytes:
    """(server, key) of each lease, as a text. `leases`: when each ends. That is left out, as it is of the contents, if
    `now` is None."""
    if now is None:
        return repr(sorted(leases)).encode()
    return repr(sorted((lease, end - now) for lease, end in leases.items())).encode()


@dataclass(frozen=True, slots=True)
class Ending:
    """How one worker ended: it returned `result`, or it raised `error`, or a fault ended it (`crashed`), or it was
    still waiting when nothing more could happen (`waiting`)."""

    worker: str
    result: Any = None
    error: BaseException | None = None
    crashed: bool = False
    #: when it ended, no other live worker was inside: each had ended, or had not begun, or waited in vain too
    alone: bool = False
    waiting: bool = False
    #: the command, or what else it waited in
    waits_in: str = ""
    #: a fault of its own struck it (a lost reply, a failover), so its errors are no surprise
    struck: bool = False


def ending_of(worker: WorkerProcess) -> Ending:
    main = worker.main
    waiting = main.state not in (State.DONE, State.DEAD)
    stand = [task.op.text for task in worker.line if task.op and task.alive] if waiting else []
    return Ending(
        worker.name,
        worker.result,
        worker.error,
        crashed=main.state is State.DEAD,
        alone=worker.alone,
        struck=worker.struck,
        waiting=waiting,
        waits_in=stand[-1] if stand else "",
    )


def shown(result: Any) -> str | int | float | type | None:
    """All of a result that a judge may look at (SystemUnderTest.judge)."""
    return result if isinstance(result, str | int | float | None) else type(result)


def told_of(ending: Ending) -> Hashable:
    """All of an ending that a judge may look at."""
    error = ending.error
    cause = error.__cause__ if error else None
    return (
        ending.worker,
        shown(ending.result),
        (type(error), str(error), type(cause), str(cause)),
        (ending.crashed, ending.alone, ending.struck, ending.waiting),
    )


def words_of(error: BaseException) -> BaseException:
    """The error as an answer: its message, its causes, and the places that it came through (`trace_of`). Its frames are
    dropped: they would hold every connection of the run open for as long as the answer is known."""
    walked = traceback.walk_tb(error.__traceback__)
    vars(error)["explorer_places"] = traceback.StackSummary.extract(walked, lookup_lines=False)
    told: BaseException | None = error
    seen: set[int] = set()  # errors may name each other as their causes
    while told is not None and id(told) not in seen:
        seen.add(id(told))
        told.__traceback__ = told.__context__ = None
        told = told.__cause__
    return error


def places_of(error: BaseException) -> traceback.StackSummary:
    """All places that an error came through, innermost last."""
    found = vars(error).get("explorer_places")
    return found if found is not None else traceback.StackSummary()


def trace_of(error: BaseException) -> traceback.StackSummary:
    """The last of them."""
    return traceback.StackSummary.from_list(places_of(error)[-SHOWN:])


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on one finished schedule: a word of its judge (SystemUnderTest.words) or UNBROKEN, and the proof.
    `trace`: where an error came from that proves nothing, as a Python traceback. `more`: works out further sentences.
    They are needed only for the schedule that is shown, and took 2 to 6 % of a small search."""

    word: str
    sentences: tuple[str, ...] = ()
    trace: str = field(default="", compare=False)
    more: Callable[[], Iterable[str]] = field(default=tuple, compare=False)


class SystemUnderTest(Protocol):
    """Knows the business; the explorer does not."""

    name: str

    @property
    def words(self) -> Sequence[str]:
        """The judge's words, gravest first, without UNBROKEN. STALLED is one of them."""

    def reset(self, changed: Collection[str]) -> None:
        """Restore the opening state of the `changed` servers (their names), by cheap commands."""

    def work(self, index: int) -> Any:
        """Worker number `index` does its operation. Runs in that worker's own thread. The thread is kept for later
        runs, so clients that are made here may be kept too."""

    def settle(self, index: int) -> None:
        """Leave no half-done state in clients. Runs in the worker's thread, after a run that ended the worker
        halfway or struck it with a fault."""

    def leave(self, index: int) -> None:
        """Close the worker's clients. Runs in its thread when the harness is taken down."""

    def remembers(self, contents: Mapping[str, bytes]) -> bool:
        """Can a run that left this on the servers be judged when they hold something else by now?"""

    def judge(self, endings: Sequence[Ending], stuck: bool, contents: Mapping[str, bytes]) -> Judgement:
        """What one finished run came to. The judge looks at what the servers hold now (`contents`: the same, as the
        source of each server's digest), or held when the system looked (`remembers`). `stuck`: no worker could go on,
        or every worker that could only polled in vain. Of a result, the judge may look at the type, or at the value of
        a text or a number: states distinguish no more than that."""

    def show(self) -> dict[str, Any]:
        """What to show beside each step in addition to the servers' keys, such as the balances. Called in the middle of
        a run, from any thread. It asks the servers through connections of its own."""
