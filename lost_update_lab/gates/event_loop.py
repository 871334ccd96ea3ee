"""The event loop of a worker's coroutines. Each of its tasks is a task of the engine, and the scheduler decides which
of them goes on.

    await asyncio.gather(withdraw(), withdraw())

    A.t1: SELECT     the loop stands for both tasks at their gates; A.t1 is chosen: the server executes its command
    A.t1: hears      … and its coroutine hears the reply, before A.t2's is even executed, or after that one's reply
    A.t2: SELECT

A command and its reply are two steps where another task of the loop waits too: what a coroutine does with a reply can
meet what another one has left in the process's memory. The loop itself is asyncio's. Where it would wait in `select`,
it stands still, and what then arrives is the scheduler's choice: one reply, or several before the loop goes on. While
callbacks are ready it does not wait, but replies may arrive before the next of them: it `goes on` by a choice too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import get_ident  # the real one: workers see another
from typing import Any

from lost_update_lab.gates.cancelled import cancelled
from lost_update_lab.gates.patch import Patches
from lost_update_lab.gates.stand import Stand
from lost_update_lab.model.commands import AWAITS, GOES_ON, HEARS
from lost_update_lab.model.digest import digest
from lost_update_lab.model.effects import NOBODY
from lost_update_lab.model.errors import GATE_IT, Broken
from lost_update_lab.model.thread_history import ThreadHistory
from lost_update_lab.model.workers import Halt, Standing, State, Task, halt
from lost_update_lab.runs.own_mistakes import ends_the_search
from lost_update_lab.runs.place import Here, anywhere
from lost_update_lab.runs.run import Run
from lost_update_lab.schedule import faults, pending
from lost_update_lab.telling.lines import own_line

_Loop = asyncio.SelectorEventLoop
SOCKET = "the event loop of {who} waits for a socket, of a client that has no gate"


class Arrivals:
    """The loop's selector. What arrives in a schedule is not up to the system."""

    def __init__(self, loop: GatedLoop, real: Any) -> None:
        self.loop, self.real = loop, real

    def select(self, timeout: float | None = None) -> Any:
        place = anywhere()
        if place is None or place.inside or place.loop is not self.loop:
            return self.real.select(timeout)
        self.loop.until_it_arrives(place, ready=timeout == 0)
        return []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


class GatedLoop(_Loop):
    """asyncio's own, for one worker, in one schedule after another."""

    def __init__(self) -> None:
        super().__init__()
        self._selector: Any = Arrivals(self, self._selector)
        self.run: Run | None = None
        self._main: Any = None
        #: the task for which something is done outside of its coroutine
        self._acting: Task | None = None

    # -- whose turn it is ---------------------------------------------------------------------------------------------

    def run_until_complete(self, future: Any) -> Any:
        before, self._main = self._main, asyncio.ensure_future(future, loop=self)
        try:
            return super().run_until_complete(self._main)
        finally:
            self._main = before

    def run_forever(self) -> None:
        place = anywhere()
        if place is None:
            return super().run_forever()
        if self.run is not place.run:
            self._begin(place)
        place.loop, self._own = self, get_ident()
        self.root.loop = self
        try:
            return super().run_forever()
        finally:
            place.loop, place.task = None, self.root
            if self.root.state is State.WAIT and self.root.op is AWAITS:
                self.root.state = State.RUN

    def _begin(self, place: Here) -> None:
        """A schedule begins."""
        self.run, self.root = place.run, place.task
        place.run.loops = True
        self.tasks: dict[Any, Task] = {}
        self.stands: dict[Task, Stand] = {}
        self.timers: dict[Task, tuple[Any, Standing]] = {}
        self._spare: list[Task] = []
        self._ear: Task | None = None
        self._stands = False  # its thread stands still in `select`

    def current(self) -> Task:
        """The engine's task for what runs now."""
        if self._acting:
            return self._acting
        running = asyncio.current_task(self)
        if running is None or running is self._main:
            return self.root
        if running not in self.tasks:
            self.tasks[running] = self._new()
            running.add_done_callback(self._ended)
        return self.tasks[running]

    def _new(self) -> Task:
        """One more task, which goes on in the thread of this loop."""
        assert self.run
        root = self.root
        if get_ident() == self._own and root.due is None and not (self.stands or self.timers):
            self._acting = root
            try:
                self.run.begin_to_look(root)
            finally:
                self._acting = None
        task = self.run.new_thread(root.worker, "t")
        task.coroutine, task.loop, task.thread, task.go = True, self, root.thread, root.go
        task.due, task.shown = (None if root.due is None else self.run.now), root.shown
        if not root.worker.order:
            root.worker.order = b"several"
        if self.run.recorder:
            self.run.recorder.opaque("several coroutines of one event loop")
        return task

    def _ended(self, ended: Any) -> None:
        """Nothing here may keep it: what nobody asked of it, asyncio logs once nobody has it any longer."""
        task = self.tasks.pop(ended, None)  # None: of the schedule before
        if task and self.run and not self.run.ending and task.alive:
            pending.end(self.run, task)

    # -- at a gate ----------------------------------------------------------------------------------------------------

    async def live(self, task: Task, steps: Standing, leaves: Callable[[], bool] | None = None) -> Any:
        """Do these steps as a coroutine, which waits where they stop. `leaves`: as in Stand."""
        assert self.run
        stand = Stand(steps, self.create_future(), leaves, own_line() if self.run.trace else None)
        self.stands[task] = stand
        self._advance(task, stand)
        try:
            return await stand.turn
        except asyncio.CancelledError:
            await cancelled(self, self.run, task, stand)
            raise

    def blocked_by(self, task: Task) -> bool:
        """Would other tasks of this loop go on, if the thread of the loop stood still for this one?"""
        return any(other is not task for other in (*self.stands, *self.timers))

    def _advance(self, task: Task, stand: Stand) -> None:
        """Do the next of its steps. Once it is answered, others that wait may hear their replies first."""
        place = anywhere()
        assert self.run
        assert place
        self._acting, place.line = task, stand.line
        try:
            next(stand.steps)
        except StopIteration as done:
            stand.answer = done.value, None
        except BaseException as error:  # noqa: BLE001  (its coroutine hears it)
            stand.answer = None, error
            if ends_the_search(error):  # that could take it for an answer
                self.run.error = self.run.error or error
                stand.answer = None, Halt()
        finally:
            self._acting = place.line = None
        if stand.answer is None:
            if stand.cancelled and task.state is State.BLOCKED and not task.canceling:
                pending.give_up(self.run, task)  # too late for psycopg's BEGIN: as if it came for this
            return
        if task.unheard and task.alive and not self.run.ending:  # its worker has crashed since
            faults.end(self.run, task)
            return
        if self._waits_to_hear() and not self.run.ending:
            pending.stand(self.run, task, HEARS)
        else:
            self._deliver(task, stand)

    def _waits_to_hear(self) -> bool:
        """May another reply come first?"""
        return len(self.stands) > 1

    def _deliver(self, task: Task, stand: Stand) -> None:
        assert stand.answer
        value, error = stand.answer
        del self.stands[task]
        self.happens(task)
        for other, its in self.stands.items():
            if its.answer:
                other.op, other.fresh = HEARS, True
        if task.alive:
            task.state = State.RUN
        if stand.turn.done():
            return
        if error:
            stand.turn.set_exception(error)
        else:
            stand.turn.set_result(value)

    def happens(self, task: Task) -> None:
        """In memory, what happens first may decide. So the order is a part of the state."""
        worker = task.worker
        if worker.order:
            worker.order = digest(worker.order, b"%d" % task.number)

    # -- where it would wait ------------------------------------------------------------------------------------------

    def until_it_arrives(self, place: Here, ready: bool) -> None:
        """Returns when the loop goes on. `ready`: it has something to do, whatever arrives."""
        try:
            self._until_it_arrives(place, ready)
        finally:
            if self._ear:
                self._listen(self._ear)

    def _until_it_arrives(self, place: Here, ready: bool) -> None:
        last = place.run.last
        while not (self._stopping or (ready and not self._may_arrive())):  # type: ignore[attr-defined]
            if not ready and len(self._selector.get_map()) > 1:
                place.run.error = Broken(SOCKET.format(who=self.root.worker.name), GATE_IT)
            self._rest()
            if ready:
                self._may_go_on()
            try:
                self._stands = True
                if place.run.ending:
                    halt(self.root)
                chosen = place.run.stand(self.root)
            except Halt:
                if not self.stands:
                    raise
                self._end_all()
                return
            finally:
                self._stands = False
            self._have_begun()
            if chosen is self._ear:
                self.happens(chosen)
                place.run.last = last
                return
            if chosen in self.timers:
                self._fire(chosen)
            elif (stand := self.stands[chosen]).answer is None:
                self._advance(chosen, stand)
            else:
                self._deliver(chosen, stand)
            ready, last = bool(self._ready), chosen  # type: ignore[attr-defined]

    def _may_arrive(self) -> bool:
        """Could a reply arrive before the loop goes on? One that is on its way, or one to what was just sent. Of all
        others, this was decided before."""
        found = [
            stand
            for task, stand in self.stands.items()
            if task.canceling or task.state is State.READY
            if stand.answer or (task.fresh and not stand.decided)
        ]
        for stand in found:
            stand.decided = True
        return bool(found)

    def _rest(self) -> None:
        """What is at no gate waits for something in its process."""
        for task in (self.root, *self.tasks.values()):
            if task.state is State.RUN and task not in self.stands:
                task.state, task.op, task.key, task.until = State.WAIT, AWAITS, None, None
                task.fresh, task.vain_since, task.dozed = False, None, False

    def _may_go_on(self) -> None:
        assert self.run
        if self._ear is None:
            self._ear = self._new()
        self._ear.op, self._ear.state, self.run.last = GOES_ON, State.READY, self._ear

    def _listen(self, ear: Task) -> None:
        """It waits for what another thread hands over."""
        ear.op, ear.state, ear.key, ear.notified = AWAITS, State.WAIT, self, False

    def _have_begun(self) -> None:
        """Once one of its tasks has begun, the worker has."""
        assert self.run
        known = (self.root, *self.stands)
        if any(task.due is not None for task in known):
            for task in known:
                task.due = self.run.now if task.due is None else task.due
        if any(task.shown for task in known):
            for task in known:
                task.shown = True

    def _end_all(self) -> None:
        """The run is over: each coroutine ends at its gate."""
        for stand in self.stands.values():
            if stand.answer is None:
                stand.end()
            if not stand.turn.done():
                stand.turn.set_exception(Halt())
        self.stands.clear()
        self.timers.clear()

    # -- timers -------------------------------------------------------------------------------------------------------

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        place = anywhere()
        if place is None or place.inside or place.run.ending or place.loop is not self:
            return super().call_at(when, callback, *args, context=context)
        seconds = max(when - self.time(), 0.0)
        handle: Any = asyncio.TimerHandle(when, callback, args, self, context)
        handle._scheduled = True
        timer = self._spare.pop() if self._spare else self._new()
        timer.timer, timer.history = True, ThreadHistory()
        steps = pending.waiting(place.run, timer, NOBODY, seconds, f"timer {seconds:g} s")
        next(steps)
        self.timers[timer] = handle, steps
        return handle  # type: ignore[no-any-return]

    def time(self) -> float:
        """A look at the time that is asyncio's own decides nothing beyond its timers."""
        place = anywhere()
        return super().time() if place is None or place.loop is not self else place.run.now / 1e6

    def _fire(self, timer: Task) -> None:
        handle, steps = self.timers[timer]
        with suppress(StopIteration):
            next(steps)
        handle._scheduled = False
        self._ready.append(handle)  # type: ignore[attr-defined]
        self._free(timer)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        for timer, (its, steps) in self.timers.items():
            if its is handle:
                steps.close()
                self._free(timer)
                return
        super()._timer_handle_cancelled(handle)  # type: ignore[misc]

    def _free(self, timer: Task) -> None:
        self.happens(timer)
        del self.timers[timer]
        timer.state, timer.until = (State.DONE if timer.alive else timer.state), None
        self._spare.append(timer)

    # -- other threads ------------------------------------------------------------------------------------------------

    def _write_to_self(self) -> None:
        """Another thread has something for this loop to do."""
        place = anywhere()
        if place is None or place.run is not self.run:
            return super()._write_to_self()  # type: ignore[misc, no-any-return]
        if self._stands and get_ident() != self._own:
            if self._ear is None:
                self._ear = self._new()
                self._listen(self._ear)
            place.run.notify(self)
        return None

    def call_exception_handler(self, context: Any) -> None:
        """What an injected fault leaves behind, or the end of a schedule, is nothing to report."""
        cut_off = self.run and (self.run.ending or self.root.worker.struck)
        if not (cut_off or isinstance(context.get("exception"), Halt)):
            super().call_exception_handler(context)

    async def getaddrinfo(self, *args: Any, **keywords: Any) -> Any:
        """In this thread, as a handshake is no step."""
        import socket

        return socket.getaddrinfo(*args, **keywords)


def _made() -> Any:
    """A new event loop: a worker's has gates."""
    return GatedLoop() if anywhere() else _Loop()


def install(patches: Patches) -> None:
    policy = asyncio.DefaultEventLoopPolicy
    patches.method(policy, "_loop_factory", staticmethod(_made))
