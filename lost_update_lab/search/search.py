"""Depth-first search over schedules, each computed from what is known, or executed again from the start."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from math import inf

from lost_update_lab.harness import Harness
from lost_update_lab.memo.recording import Recording
from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.errors import (
    CHOOSE_BEFORE,
    GATE_IT,
    MORE_TIME,
    BeginsAgain,
    Broken,
    ClockInside,
    CountsItsTries,
    Elsewhere,
    LooksAfterAll,
    NotTheSame,
    Unknown,
)
from lost_update_lab.model.system import UNBROKEN, told_of
from lost_update_lab.model.transitions import Transition
from lost_update_lab.runs import garbage
from lost_update_lab.runs.found import Found, SearchResult
from lost_update_lab.runs.in_memory_run import InMemoryRun
from lost_update_lab.runs.run import Run
from lost_update_lab.schedule import state, virtual_clock
from lost_update_lab.schedule.decisions import CUT
from lost_update_lab.schedule.random_choice import DECIDES
from lost_update_lab.schedule.schedule_id import Diverged
from lost_update_lab.schedule.world import World
from lost_update_lab.search.choices import Choosing
from lost_update_lab.search.fault_order import FaultOrder, UntilDecided
from lost_update_lab.search.poll_calibration import calibrate_polls
from lost_update_lab.search.single_deviations import SHARE, single_deviations
from lost_update_lab.search.stack import Places, in_common

_now = time.perf_counter
#: one in this many of the schedules that were computed in memory is executed too
LOOK_EVERY = 100
#: how many decisions beyond its path a worker is fed. `explore --strategy watchdog` takes 61 s with 30, 55 s with 100,
#: and 79 s with 400
FED_FURTHER = 100


class Search(Choosing):
    """Explores all schedules of the harness's system. `unclaimed`: faults that the system does not claim to withstand.
    For these, the first schedule that loses money is enough (fault_order.py)."""

    def __init__(self, harness: Harness, unclaimed: frozenset[Fault] = frozenset()) -> None:
        self.harness, self.bounds = harness, harness.bounds
        self.result = SearchResult(harness.bounds, harness.system.words)
        self.unclaimed, until_decided = unclaimed, UntilDecided(unclaimed, self.result)
        super().__init__(harness.bounds.reduction == "full", FaultOrder(until_decided))
        #: what was known of the waiters before the search, which is what a replay knows of them
        self.calibrated: dict[bytes, int] = {}
        self.news: int | None = None  # the number of a worker that will be told something new
        self.before: list[tuple[Places, int]] = []  # the path of the run before

    def explore(self) -> SearchResult:
        recording, begun = self.harness.recording, self.bounds.begun or _now()
        while True:
            try:
                result = self._explored(begun)
                break
            except (
                NotTheSame
            ):  # a worker was taken to be at an earlier place and was not: again, without merging places
                assert recording
                self.harness.recording = recording = Recording(merges=False)
            except Elsewhere as error:
                error.seen = self.result.figures
                raise
            except LooksAfterAll:  # again, with the jumps of that clock
                self.harness.known_to_look = True
                self.harness.recording = recording = recording and Recording(recording.merges)
            except BeginsAgain:
                self.harness.forget_answers()
                recording = self.harness.recording
            except Exception as error:
                error.add_note(f"Until then the search had come to {self.result.figures}")
                raise
            self.__init__(self.harness, self.unclaimed)  # type: ignore[misc]
        result.seconds = _now() - begun
        return result

    def _explored(self, begun: float) -> SearchResult:
        """`begun`: the time from which the budget counts."""
        with garbage.frozen():
            return self._within(begun)

    def _within(self, begun: float) -> SearchResult:
        result = self.result
        self.harness.keeps = True
        budget = self.bounds.budget or inf
        self.harness.until = begun + budget * (1 - SHARE)
        try:
            self.calibrated = calibrate_polls(self.harness)
            if self.harness.recording:
                self.harness.recording.settled = True
                self.harness.learns = self.full and self.bounds.in_memory
            self.watched = self.calibrated if self.full else {}
            self._one()
            while self._backtrack():
                self._one()
            self.harness.settled()
            result.exhausted, result.settled = not self.fault_order.left, True
            result.decided = self.fault_order.decided()
        except Broken as error:
            if isinstance(error, NotTheSame) and self.harness.recording and self.harness.recording.merges:
                raise
            if isinstance(error, Elsewhere | LooksAfterAll | BeginsAgain | ClockInside):
                raise
            result.cause, result.remedy, result.trace = str(error), error.remedy, error.trace
            if error.remedy == MORE_TIME:
                result.decided = self.fault_order.decided() if self.full else set()
                self._single_deviations(begun + budget)
        finally:
            result.states = len(self.expanded) + len(self.passed)
            self.harness.until, self.harness.keeps = inf, False
            if self.harness.recording:
                self.harness.recording.settled = False
        if gone_around := [who for server in self.harness.servers.values() if (who := server.bypassed())]:
            result.exhausted = result.settled = False
            result.gone_around = result.cause = "; ".join(gone_around)
            result.remedy = GATE_IT
            result.decided.clear()
        else:
            self._unexplored()
        result.notes = [note for server in self.harness.servers.values() for note in server.notes()]
        result.virtual_clocks = {
            server.name: server.virtual_by for server in self.harness.servers.values() if server.timed
        }
        return result

    def _unexplored(self) -> None:
        """A loss that was found is one, whatever was not explored."""
        result, found = self.result, list[Broken]()
        if choice := self.harness.random_choice:
            found.append(Broken(f"{DECIDES} (drawn in {choice})", CHOOSE_BEFORE))
        servers, commits = self.harness.servers.values(), result.others_committed
        found += [why for server in servers if (why := server.unexplored(commits))]
        if found and not result.cause and result.under(None) == UNBROKEN:
            result.exhausted = result.settled = False
            result.cause, result.remedy = str(found[0]), found[0].remedy
            result.decided.clear()

    def _single_deviations(self, until: float) -> None:
        """What a short look can still find when there is no time for everything."""
        self.harness.until = until
        with suppress(Broken, Diverged):
            for found, run in single_deviations(self.harness, self.calibrated if self.full else {}):
                self.result.counted(run)
                self.result.judged(found, run, run.shared())

    def _one(self) -> None:
        known = len(self.path)
        self.fresh.clear()
        self._learn(run := self._run())
        self.fault_order.keep(not run.warming_up)
        if run.warming_up:  # a script was loaded: again, now that the server has it
            del self.path[known:]
            self.expanded -= self.fresh
            self.passed -= self.fresh
            return self._one()
        result = self.result
        result.counted(run)
        if run.wall_clock_read and not self.harness.looks and self.bounds.faults:
            raise LooksAfterAll
        if not run.gave_up <= self.harness.counting:
            self.harness.counting |= run.gave_up
            raise CountsItsTries
        if run.cut:
            result.left_in_deadlock += run.is_left_in_deadlock
            return None

        if self.full and not run.stuck:
            end = state.moment(run)
            self._note(run, end)
            self.expanded.add(end.key)
        contents = run.shared()
        judgement = self.harness.judge(run)
        choices = tuple(branch.taken for branch in self.path)
        transitions = tuple(branch.transitions[branch.taken] for branch in self.path)
        times = tuple(branch.at for branch in self.path)
        found = Found(judgement, tuple(sorted(run.spent)), choices, transitions, tuple(run.steps), times)
        result.judged(found, run, contents)
        return None

    def _run(self) -> World:
        """What the next schedule comes to: computed in memory, or executed. Some are both."""
        self.news = self.path[-1].leads_to_news() if self.path else None
        in_memory = self._in_memory()
        while in_memory is None and self.news is not None and self._feed(self.news):
            in_memory = self._in_memory()
        if in_memory and (self.result.schedules % LOOK_EVERY or in_memory.warming_up):
            self.result.in_memory += 1
            return in_memory
        length = len(self.path)
        run = self._executed(replayed=in_memory is None)
        if in_memory and (length, _end_of(in_memory)) != (len(self.path), _end_of(run)):
            raise NotTheSame("in memory, a schedule of known steps came to something else than executed")
        return run

    def _in_memory(self) -> InMemoryRun | None:
        """The run without any server, from the last decision on. None: something is not known."""
        last = max((depth for depth, branch in enumerate(self.path) if branch.checkpoint), default=-1)
        if last < 0:
            run, transition, self.depth = self.harness.in_memory_run(self._choose), None, 0
        else:
            branch, self.depth = self.path[last], last + 1
            run, transition = branch.gone_on(self._choose), branch.transitions[branch.taken]
        if run is None:
            return None
        run.watched = self._watched(self.depth)
        self.news = None
        try:
            run.go_on(transition)
            self.harness.end_in_memory(run)
        except Unknown as unknown:
            self.news = unknown.worker
            return None
        return run

    def _feed(self, worker: int) -> bool:
        """Run this worker's code, fed with what is known. Returns whether the recording knows more now."""
        self.depth = 0
        return self.harness.feeding.feed(self._beyond, self._watched(0), worker, self._ahead)

    def _ahead(self, world: World) -> Transition | None:
        """What the path takes next. Nobody looks what else could be taken there: a run that is fed takes 0.84 of the
        time so."""
        branch = self.path[self.depth] if self.depth < len(self.path) else None
        if branch is None or branch.taken > branch.last:
            return None
        self.depth += 1
        world.watched = self._watched(self.depth)
        return branch.transitions[branch.taken]

    def _beyond(self, world: World, transitions: Sequence[Transition]) -> int:
        """A little further: what the worker does there will be asked for next."""
        further, self.depth = self.depth - len(self.path), self.depth + 1
        return CUT if further < 0 else _goes_on(world, transitions, further)

    def _executed(self, replayed: bool) -> Run:
        """Execute the run. Where workers may be `replayed`, only those run their real code of which the recording does
        not know what they do. That shows in a run, which then begins again with one more."""
        recorded = self.harness.recording and self.harness.recording.replays
        real: set[int] | None = set() if recorded and replayed else None
        if real is not None and self.news is not None:
            real.add(self.news)
        while True:
            self.depth, versions = 0, in_common(self.path, self.before)
            try:
                run = self.harness.run(self._choose, self._watched(0), None, versions, real)
            except Unknown as unknown:
                assert real is not None, "real code knows what it does"
                who = unknown.worker
                real = None if who is None or who in real else {*real, who}
                continue
            self.before = [(branch.places, branch.taken) for branch in self.path]
            self.result.played += real is not None and not real
            return run

    def _learn(self, run: World) -> None:
        news = {
            kind: time
            for kind, time in run.learned.items()
            if kind not in self.calibrated and time > self.watched.get(kind, 0)
        }
        if news:
            self.watched = {**self.watched, **news}

    def _backtrack(self) -> bool:
        """Turn to the next schedule. Returns whether there is one."""
        if self.fault_order.leave():
            self.path.clear()
        while self.path:
            branch = self.path[-1]
            if branch.taken < branch.last:
                branch.taken += 1
                if self._is_open(branch):
                    return True
            self.path.pop()
        while path := self.fault_order.next():
            if not self._foreseen(path[-1], path):
                self.path = path
                return True
        return False


def _goes_on(world: World, transitions: Sequence[Transition], further: int) -> int:
    if further >= FED_FURTHER or virtual_clock.only_polls(world):
        return CUT
    return next((place for place, each in enumerate(transitions) if not each.cost), CUT)


def _end_of(run: World) -> tuple[object, ...]:
    """Where the run came to, and how."""
    return run.cut, run.stuck, run.shared(), run.steps, tuple(map(told_of, run.endings))
