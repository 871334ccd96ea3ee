"""Depth-first search over schedules, by executing them again from the start."""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from contextlib import suppress
from math import inf

from loadtest.explorer import state, timeline
from loadtest.explorer.deciding import CUT
from loadtest.explorer.endless import GATE_IT, MORE_TIME, REPORT_IT, Broken
from loadtest.explorer.options import Kind, Option
from loadtest.explorer.path import Branch, Noted, in_common, noted
from loadtest.explorer.playing import Unknown
from loadtest.explorer.postponed import Postponed
from loadtest.explorer.replay import Diverged
from loadtest.explorer.result import Found, Result
from loadtest.explorer.run import Run
from loadtest.explorer.scout import SHARE, scout
from loadtest.explorer.stage import Stage
from loadtest.explorer.state import Moment
from loadtest.explorer.summaries import Summaries, footprint
from loadtest.explorer.waiters import watch_waiters

_now = time.perf_counter
LOOK_EVERY = 50  # schedules: one looks at each decision what the options are, as if nobody had been there


class Search:
    """Explores all schedules of the stage's subject."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.bounds = stage, stage.bounds
        self.full = stage.bounds.reduction == "full"
        self.path: list[Branch] = []
        self.depth = self.foreseen = 0
        self.expanded: set[bytes] = set()
        self.passed: set[bytes] = set()
        self.fresh: set[bytes] = set()
        self.watched: dict[bytes, int] = {}
        #: what was known of the waiters before the search: as whoever replays a schedule knows them
        self.waiters: dict[bytes, int] = {}
        self.summaries = Summaries()
        self.postponed = Postponed()
        self.before: list[tuple[Noted, int]] = []  # the path of the run before
        self.result = Result(stage.bounds)

    def explore(self) -> Result:
        result, begun = self.result, _now()
        gc.freeze()  # what exists now lives as long as the search: no use in looking at it again and again
        budget = self.bounds.budget or inf
        self.stage.until = begun + budget * (1 - SHARE)
        try:
            self.waiters = watch_waiters(self.stage)
            if self.stage.recording:
                self.stage.recording.settled = True
            self.watched = self.waiters if self.full else {}
            self._one()
            while self._backtrack():
                self._one()
            result.exhausted = True
        except Broken as error:
            result.cause, result.remedy = str(error), error.remedy
            if error.remedy == MORE_TIME:
                result.decided = self.postponed.decided() if self.full else set()
                self._scout(begun + budget)
        finally:
            self.stage.until = inf
            gc.unfreeze()
        if gone_around := [who for server in self.stage.servers.values() if (who := server.around())]:
            result.exhausted, result.cause, result.remedy = False, "; ".join(gone_around), GATE_IT
            result.decided.clear()
        result.states, result.seconds = len(self.expanded) + len(self.passed), _now() - begun
        return result

    def _scout(self, until: float) -> None:
        """What is still to be seen at a look, when there is no time for all."""
        self.stage.until = until
        with suppress(Broken, Diverged):
            for found, run in scout(self.stage, self.waiters if self.full else {}):
                self.result.counted(run)
                self.result.judged(found, run, timeline.shared(run))

    def _one(self) -> None:
        known = len(self.path)
        self.fresh.clear()
        self._learn(run := self._run())
        self.postponed.keep(not run.cold)
        if run.cold:  # a script was loaded: again, now that the server has it
            del self.path[known:]
            self.expanded -= self.fresh
            self.passed -= self.fresh
            return self._one()
        result = self.result
        result.counted(run)
        if run.wall_clock_read and not self.stage.looks:
            raise Broken(
                "a worker looks at a wall clock, and did not in the runs before the search", REPORT_IT
            )
        if run.cut:
            return None

        if self.full and not run.stuck:
            end = state.moment(run)
            self._note(run, end)
            self.expanded.add(end.key)
        contents = timeline.shared(run)
        judgement = self.stage.subject.judge(run.endings, run.stuck, contents)
        choices = tuple(branch.taken for branch in self.path)
        options = tuple(branch.options[branch.taken] for branch in self.path)
        found = Found(judgement, tuple(sorted(run.spent)), choices, options, tuple(run.steps))
        result.judged(found, run, contents)
        return None

    def _run(self) -> Run:
        """Execute the schedule that comes next, by what is known of the workers as far as that goes."""
        recorded = self.stage.recording and not self.stage.recording.useless
        known = recorded and not (self.path and self.path[-1].leads_to_news())
        beaten = (max(len(self.path) - 1, 0), self._follow)
        follows = beaten if recorded and self.result.schedules % LOOK_EVERY else None
        for played in (True, False) if known else (False,):
            self.depth, versions = 0, in_common(self.path, self.before)
            with suppress(Unknown):
                run = self.stage.run(self._choose, self._watched(0), None, versions, played, follows)
                self.before = [(branch.noted, branch.taken) for branch in self.path]
                self.result.played += played
                return run
        raise AssertionError("real code knows what it does")

    # -- choosing -------------------------------------------------------------------------------------------------

    def _choose(self, run: Run, options: Sequence[Option]) -> int:
        depth, self.depth = self.depth, self.depth + 1
        if depth < len(self.path):
            branch = self.path[depth]
            if branch.options != tuple(options):
                raise Broken(
                    f"not repeatable: at decision {depth} there were {[str(o) for o in branch.options]}, "
                    f"now {[str(o) for o in options]}. Something outside the gates decides"
                )
            run.watched = self._watched(depth + 1)
            return branch.taken
        return self._extend(run, tuple(options))

    def _follow(self, run: Run) -> Option:
        """Along the path, where nothing needs to be found out again."""
        branch, self.depth = self.path[self.depth], self.depth + 1
        run.watched = self._watched(self.depth)
        branch.noted.leave(run)
        return branch.options[branch.taken]

    def _extend(self, run: Run, options: tuple[Option, ...]) -> int:
        if timeline.only_polls(run):
            resume = next((i for i, o in enumerate(options) if o.kind is Kind.RESUME), None)
            if resume is None:
                run.stuck = True
                return 0
            self.path.append(Branch(options, resume, resume, run.watched, *noted(run)))
            return resume
        if not self.full:
            self.path.append(Branch(options, 0, len(options) - 1, run.watched, *noted(run)))
            return 0
        moment = state.moment(run)
        self._note(run, moment)
        key, shape = moment.key, state.shape(run) if run.collapsed else b""
        again = any(branch.key == key for branch in self.path)
        if shape and (again or any(branch.shape == shape for branch in self.path)):
            return self._straight(run, options, key, shape)
        if key in self.expanded:
            if again:
                raise Broken(
                    "a moment came again on its own way: something is missing in the state", REPORT_IT
                )
            return CUT
        self.expanded.add(key)
        self.fresh.add(key)
        footprints = tuple(footprint(run, moment, option) for option in options)
        branch = Branch(
            options, 0, len(options) - 1, run.watched, *noted(run), key, shape, moment, footprints
        )
        self.path.append(branch)
        self.postponed.put_off(self.path)
        return branch.taken if self._is_open(branch) else CUT

    def _is_open(self, branch: Branch) -> bool:
        """Turn to the next option that is not put off, and leads where the search has not been. → is there one?"""
        while branch.taken <= branch.last:
            put_off = branch.moment and branch.options[branch.taken].cost
            if not put_off and not self._foreseen(branch, self.path):
                return True
            branch.taken += 1
        return False

    def _note(self, run: Run, after: Moment) -> None:
        """What the option that was taken last has done."""
        before = self.path[-1] if self.path else None
        if before and before.moment and not run.cold and (trace := before.footprints[before.taken]):
            self.summaries.note(before.moment, before.options[before.taken], trace, after)

    def _foreseen(self, branch: Branch, path: list[Branch]) -> bool:
        """Would the option that comes next lead where the search has been, other than on this very path?"""
        key = self.summaries.leads_to(branch)
        known = key in self.expanded and all(other.key != key for other in path)
        self.foreseen += known
        return known

    def _straight(self, run: Run, options: tuple[Option, ...], key: bytes, shape: bytes) -> int:
        """Polls in vain and time, nothing else: let them really happen, but do not branch over each of them."""
        mine = any(branch.key == key for branch in self.path)
        if not mine and (key in self.expanded or key in self.passed):
            return CUT
        self.passed.add(key)
        self.fresh.add(key)
        self.path.append(Branch(options, 0, 0, self.watched, *noted(run), key, shape))
        return 0

    def _watched(self, depth: int) -> dict[bytes, int]:
        return self.path[depth].watched if depth < len(self.path) else self.watched

    def _learn(self, run: Run) -> None:
        news = {kind: time for kind, time in run.learned.items() if time > self.watched.get(kind, 0)}
        if news:
            self.watched = {**self.watched, **news}

    def _backtrack(self) -> bool:
        """Turn to the next schedule. → is there one?"""
        while self.path:
            branch = self.path[-1]
            if branch.taken < branch.last:
                branch.taken += 1
                if self._is_open(branch):
                    return True
            self.path.pop()
        while path := self.postponed.next():
            if not self._foreseen(path[-1], path):
                self.path = path
                return True
        return False
