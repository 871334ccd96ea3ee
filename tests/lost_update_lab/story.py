"""A schedule in people's words, run on the real strategies: `("A", "SETNX"), ("A", "crash")`.

`(who, COMMAND)`: this thread goes on, and time with it, until it has executed a command that begins so; `before
COMMAND`: until it stands there; `lost-reply COMMAND` and `lag COMMAND` do that fault to it. `(who, fault)`,
`(who, "resume")`, `(server, "failover")`: as the transitions are called. What happens to a server comes right
after a step there. After the last one everybody goes on in turn.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from lost_update_lab.model.transitions import Kind, Transition
from tests.lost_update_lab.recorded import all_told

#: decisions until a story is over
MOST = 3000
AT_A_COMMAND = {"lost-reply": Kind.LOST_REPLY, "lag": Kind.LAG}
OTHER = {kind.value: kind for kind in Kind} | {"clock-back": Kind.CLOCK_JUMP}


@dataclass(frozen=True)
class Story:
    """What is told, and the system of it. `legs`: the amount of each worker, if not the workload's."""

    strategy: str
    told: tuple[tuple[str, str], ...]
    workers: int = 2
    faults: int = 0
    work: int = 0
    workload: str = "deposits"
    amounts: tuple[int, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)


class Teller:
    """A chooser that follows the story. Raises LookupError where no schedule can go like that."""

    def __init__(self, told: Sequence[tuple[str, str]]) -> None:
        self.told, self.rest, self.left = told, list(told), MOST

    def __call__(self, run: Any, transitions: Sequence[Transition]) -> int:
        from lost_update_lab.schedule.schedule_id import _quietest

        if run.decisions == 1:
            self.rest, self.left = list(self.told), MOST
        if not self.rest:
            return _quietest(run, transitions)
        who, what = self.rest[0]
        self.left -= 1
        if not self.left:
            raise LookupError(f"{self.rest[:1]} does not come")
        verb, _, command = what.partition(" ")
        if verb in OTHER and verb not in AT_A_COMMAND:
            return self._other(who, verb, transitions)
        command = command if verb in AT_A_COMMAND or verb == "before" else what
        step = Transition(Kind.STEP, who)
        if step in transitions:
            if not run.task(who).op.text.startswith(command):
                return transitions.index(step)
            self.rest.pop(0)
            if verb == "before":
                return self(run, transitions)
            return self._pick(transitions, Transition(AT_A_COMMAND.get(verb, Kind.STEP), who))
        return self._meanwhile(transitions)

    def _other(self, who: str, verb: str, transitions: Sequence[Transition]) -> int:
        number = {"clock-jump": 1, "clock-back": -1}.get(verb, 0)
        for place, transition in enumerate(transitions):
            if transition.kind is OTHER[verb] and transition.who == who and transition.number in (number, 0):
                self.rest.pop(0)
                return place
        return self._meanwhile(transitions)

    def _meanwhile(self, transitions: Sequence[Transition]) -> int:
        """Time goes on; if it cannot, a worker is due first."""
        for place, transition in enumerate(transitions):
            if transition.kind is Kind.TICK:
                return place
        return self._pick(
            transitions, next((o for o in transitions if o.kind is Kind.STEP), Transition(Kind.TICK))
        )

    def _pick(self, transitions: Sequence[Transition], wanted: Transition) -> int:
        if wanted not in transitions:
            raise LookupError(f"{self.rest[:1]}: no {wanted} among {[str(each) for each in transitions]}")
        return transitions.index(wanted)


def play(story: Story) -> dict[str, Any]:
    """What came of it: `word`, `sentences`, `spent`, the verdict of its replay, all `replies` of both, at how
    many places a worker `looks` at a clock."""
    from loadtest.explorer.counterexample import counterexample
    from loadtest.explorer.explore import _gloss, harness_of
    from loadtest.findings.job import Job
    from loadtest.workloads import EXPLORED, Turns
    from lost_update_lab.harness.play import play as played
    from lost_update_lab.schedule.schedule_id import decode, encode, exactly

    turns = EXPLORED[story.workload]
    if story.amounts:
        turns = Turns(turns.openings, lambda index: (("A0001", story.amounts[index]),))
    job = Job(
        strategy=story.strategy,
        workers=story.workers,
        faults=story.faults,
        work=story.work,
        workload=story.workload,
    )
    with harness_of(job, turns, **story.settings) as harness:
        teller = Teller(story.told)
        found, _ = played(harness, {}, teller)
        again, _ = played(harness, {}, exactly(decode(encode(found.choices))))
        shown = counterexample(job, found, 1, _gloss(harness))
        looks = sum(bool(told.clocks) for told in all_told(harness.recording))
    return {
        "replies": [[step.reply for step in each.steps] for each in (found, again)],
        "looks": looks,
        "word": found.word,
        "again": again.word,
        "same": again.transitions == found.transitions,
        "untold": teller.rest,
        "spent": list(map(str, found.faults)),
        "sentences": shown["sentences"],
    }


def teller(pipe: Connection, environment: dict[str, str], path: list[str]) -> None:
    """A process with Django's settings for servers of its own: plays what comes through the pipe."""
    os.environ.update(environment)
    sys.path[:] = path
    import django

    django.setup()
    while True:
        try:
            story = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(play(story))
        except Exception as error:  # noqa: BLE001  (told to the test)
            import traceback

            pipe.send({"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()})


class unlocked_in_finally:
    """`counter-one-name`, unlocked in `finally`, whether it was got or not."""

    def __init__(self, name: str, *, redis: Any) -> None:
        from locks.counter_one_name import CounterOneNameLock

        self.lock = CounterOneNameLock(name, redis=redis)

    def __enter__(self) -> None:
        from locks import LockTimeout

        if not self.lock.acquire():
            self.lock.release()
            raise LockTimeout("busy")

    def __exit__(self, *_: object) -> None:
        self.lock.release()
