"""What is explored: the workers' code, the opening state, and how a finished run is judged."""

from __future__ import annotations

import traceback
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lost_update_lab.model.workers import State, Worker

#: no law was broken in this schedule: what that is worth, only the judge of the whole search can say
UNBROKEN = "unbroken"
#: nobody could go on: of all words of a judge the only other one that the engine knows
STALLED = "stalled"


#: places of an error that are kept
SHOWN = 12


@dataclass(frozen=True, slots=True)
class Ending:
    """How one worker ended: it returned `result`, or raised `error`, or a fault ended it (`crashed`), or it was
    still waiting when nothing could happen any more (`waiting`)."""

    worker: str
    result: Any = None
    error: BaseException | None = None
    crashed: bool = False
    #: when it ended, no other live worker was inside: all others had ended, or not begun, or waited in vain too
    alone: bool = False
    waiting: bool = False
    #: a fault of its own struck it (a lost reply, a failover): its errors are no surprise
    struck: bool = False


def ending_of(worker: Worker) -> Ending:
    main = worker.main
    return Ending(
        worker.name,
        worker.result,
        worker.error,
        crashed=main.state is State.DEAD,
        alone=worker.alone,
        struck=worker.struck,
        waiting=main.state not in (State.DONE, State.DEAD),
    )


def told_of(ending: Ending) -> Hashable:
    """All of an ending that a judge may look at (SystemUnderTest.judge)."""
    result, error = ending.result, ending.error
    cause = error.__cause__ if error else None
    return (
        ending.worker,
        result if isinstance(result, str | int | float | None) else type(result),
        (type(error), str(error), type(cause), str(cause)),
        (ending.crashed, ending.alone, ending.struck, ending.waiting),
    )


def words_of(error: BaseException) -> BaseException:
    """The error as an answer: what it says, and of its cause, and the places that it came through (`trace_of`). Its
    frames would hold every connection of the run open for as long as the answer is known."""
    walked = traceback.walk_tb(error.__traceback__)
    places = traceback.StackSummary.extract(walked, limit=-SHOWN, lookup_lines=False)
    vars(error)["explorer_places"] = places
    told: BaseException | None = error
    seen: set[int] = set()  # errors may name each other as their causes
    while told is not None and id(told) not in seen:
        seen.add(id(told))
        told.__traceback__ = told.__context__ = None
        told = told.__cause__
    return error


def trace_of(error: BaseException) -> traceback.StackSummary:
    """The last places that an error came through, the innermost last."""
    found = vars(error).get("explorer_places")
    return found if found is not None else traceback.StackSummary()


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one finished schedule came to: a word of its judge (SystemUnderTest.words) or UNBROKEN, and the proof."""

    word: str
    sentences: tuple[str, ...] = ()


class SystemUnderTest(Protocol):
    """Knows the business; the explorer does not."""

    name: str

    @property
    def words(self) -> Sequence[str]:
        """The words of its judge, the gravest first, without UNBROKEN. STALLED is among them."""

    def reset(self, changed: Collection[str]) -> None:
        """Bring the servers that were `changed` (their names) back to the opening state, by cheap commands."""

    def work(self, index: int) -> Any:
        """Worker number `index` does its operation. Runs in that worker's own thread, which is kept for later
        runs: clients that are made here may be kept too."""

    def settle(self, index: int) -> None:
        """Runs in the worker's thread after a run that ended it halfway, or struck it with a fault: leave no half-done
        state in clients."""

    def leave(self, index: int) -> None:
        """Runs in the worker's thread when the harness is taken down: close its clients."""

    def remembers(self, contents: Mapping[str, bytes]) -> bool:
        """Can a run that left this on the servers be judged when they hold something else by now?"""

    def judge(self, endings: Sequence[Ending], stuck: bool, contents: Mapping[str, bytes]) -> Judgement:
        """What one finished run came to, from what the servers hold now (`contents`: the same, of each server as a
        digest's source), or held when the system looked (`remembers`). `stuck`: no worker could go on, or all that
        could did nothing but poll in vain. Of a result it may look at the type, or at the value of a text or a number:
        states differ by no more than that."""

    def show(self) -> dict[str, Any]:
        """What to show beside each step, besides the keys of the servers: the balances. It is called in the middle
        of a run, from any thread, and asks the servers by connections of its own."""
