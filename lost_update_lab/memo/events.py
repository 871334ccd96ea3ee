"""The events other than commands that a thread stands before, and how they are replayed without a thread."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from lost_update_lab.memo.recording import Event, Recording
from lost_update_lab.model.commands import Op
from lost_update_lab.model.effects import ASKED, CLOSED, DISK, DRAW, LOOK, NOTIFY, STAMP, START, TOLD, WALL
from lost_update_lab.model.system import shown
from lost_update_lab.model.workers import Standing, Task
from lost_update_lab.schedule import pending, retries
from lost_update_lab.schedule.world import World


@dataclass(slots=True)
class Waiting:
    """`key`: what the thread waits for, by its name in the recording."""

    key: tuple[str, int, int]
    seconds: float | None
    text: str

    def same(self) -> Hashable:
        seconds = (
            None if self.seconds is None else round(self.seconds, 6)
        )  # times are in µs, and seconds are floats
        return self.key, seconds, self.text

    def play(self, world: World, task: Task, recording: Recording) -> Standing:
        return pending.waiting(world, task, world.key(task.worker, self.key), self.seconds, self.text)

    def stand(self, world: World, task: Task) -> None:
        pending.wait(world, task, world.key(task.worker, self.key), self.seconds, self.text)

    def turn(self, world: World, task: Task, recording: Recording) -> None:
        pending.waited(world, task)


@dataclass(slots=True)
class Begins:
    """The worker has sent nothing yet, or nothing that others can see since its last command, and is about to look at a
    clock. Before its first command it may come to this as late as it likes; after it, the worker has begun. Or it is
    another moment of its own, at which a fault may come (`op`)."""

    op: Op

    def same(self) -> Hashable:
        return self.op.identity

    def play(self, world: World, task: Task, recording: Recording | None = None) -> Standing:
        self.stand(world, task)
        yield
        pending.hear(world, task, "begun")

    def stand(self, world: World, task: Task) -> None:
        pending.stand(world, task, self.op)

    def turn(self, world: World, task: Task, recording: Recording) -> None:
        pending.hear(world, task, "begun")


@dataclass(slots=True)
class Ended:
    """The thread has ended. A main thread has an answer."""

    result: Any = None
    error: BaseException | None = None

    def same(self) -> Hashable:
        return shown(self.result), type(self.error), str(self.error)

    def play(self, world: World, task: Task, recording: Recording) -> Standing:
        self._answer(task)
        return
        yield

    def _answer(self, task: Task) -> None:
        if task.main:
            task.worker.result, task.worker.error = self.result, self.error

    def stand(self, world: World, task: Task) -> None:
        self._answer(task)
        pending.end(world, task)

    def turn(self, world: World, task: Task, recording: Recording) -> None:
        raise AssertionError("it has ended")


def replayed(world: World, task: Task, recording: Recording) -> Standing:
    """What `task` does, from beginning to end. Raises Unknown."""
    event: Event | None = None
    while not isinstance(event, Ended):
        segment = recording.next(world, task)
        for effect in segment.effects:
            if begun := do(world, task, *effect):
                begun.steps = replayed(world, begun, recording)
        event, task.heard = segment.event, None
        yield from event.play(world, task, recording)


def do(world: World, task: Task, kind: str, *details: Any) -> Task | None:
    """Apply one effect of a thread. Returns the thread that it starts, if it starts one."""
    if kind in (LOOK, WALL):
        world.wall_clock_read |= kind == WALL
        task.history.look(world.look(task) if kind == WALL else world.now)
    elif kind == STAMP and world.distinct_times:
        task.history.look(world.look(task))
    elif kind == ASKED:
        task.history.add(*details)
    elif kind == DRAW:
        retries.draw(task, *details)
    elif kind == START:
        begun = world.new_thread(task.worker)
        begun.after = task.number if details[0] else None
        return begun
    elif kind == NOTIFY:
        key, count = details
        world.notify(world.key(task.worker, key), count)
    elif kind == DISK:
        world.disk.becomes(*details)
    elif kind == CLOSED:
        server, who = details
        world.servers[server].forget(who)
    elif kind == TOLD and task.op:
        pending.tell(world, task, task.op, *details)
    return None
