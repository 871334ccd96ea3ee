"""What a search takes at each decision: along its path what it took before, then what is new."""

from __future__ import annotations

from collections.abc import Sequence

from lost_update_lab.model.errors import REPORT_IT, Broken, NotTheSame
from lost_update_lab.model.transitions import Kind, Option
from lost_update_lab.schedule import state, virtual_time
from lost_update_lab.schedule.state import Moment
from lost_update_lab.schedule.transition import CUT
from lost_update_lab.schedule.world import World
from lost_update_lab.search.fault_order import Postponed
from lost_update_lab.search.independence import Summaries, footprint
from lost_update_lab.search.stack import Branch, noted


class Choosing:
    """The path of a search, and the states that it has seen."""

    def __init__(self, full: bool, postponed: Postponed) -> None:
        self.full, self.postponed = full, postponed
        self.path: list[Branch] = []
        self.depth = self.foreseen = 0
        self.expanded: set[bytes] = set()
        self.passed: set[bytes] = set()
        self.fresh: set[bytes] = set()
        self.watched: dict[bytes, int] = {}
        self.summaries = Summaries()

    def _choose(self, world: World, options: Sequence[Option]) -> int:
        depth, self.depth = self.depth, self.depth + 1
        if depth < len(self.path):
            branch = self.path[depth]
            if branch.options != tuple(options):
                there, now = ([str(o) for o in each] for each in (branch.options, options))
                raise NotTheSame(f"at decision {depth} there were {there}, now {now}")
            world.watched = self._watched(depth + 1)
            branch.passed(world)
            return branch.taken if branch.taken <= branch.last else CUT
        return self._extend(world, tuple(options))

    def _follow(self, world: World) -> Option:
        """Along the path, where nothing needs to be found out again."""
        branch, self.depth = self.path[self.depth], self.depth + 1
        world.watched = self._watched(self.depth)
        branch.noted.leave(world)
        branch.passed(world)
        return branch.options[branch.taken]

    def _extend(self, world: World, options: tuple[Option, ...]) -> int:
        if virtual_time.only_polls(world):
            resume = next((i for i, o in enumerate(options) if o.kind is Kind.RESUME), None)
            if resume is None:
                world.stuck = True
                return 0
            self._append(world, Branch(options, resume, resume, world.watched, *noted(world)))
            return resume
        if not self.full:
            self._append(world, Branch(options, 0, len(options) - 1, world.watched, *noted(world)))
            return 0
        moment = state.moment(world)
        self._note(world, moment)
        key, shape = moment.key, state.shape(world) if world.beyond else b""
        again = any(branch.key == key for branch in self.path)
        if (world.collapsed and again) or (shape and any(branch.shape == shape for branch in self.path)):
            return self._straight(world, options, key, shape)
        if key in self.expanded:
            if again:
                raise Broken(
                    "a moment came again on its own way: something is missing in the state", REPORT_IT
                )
            return CUT
        self.expanded.add(key)
        self.fresh.add(key)
        footprints = tuple(footprint(world, moment, option) for option in options)
        branch = Branch(
            options, 0, len(options) - 1, world.watched, *noted(world), key, shape, moment, footprints
        )
        self._append(world, branch)
        self.postponed.put_off(self.path)
        return branch.taken if self._is_open(branch) else CUT

    def _append(self, world: World, branch: Branch) -> None:
        branch.passed(world)
        self.path.append(branch)

    def _is_open(self, branch: Branch) -> bool:
        """Turn to the next option that is not put off, and leads where the search has not been. → is there one?"""
        while branch.taken <= branch.last:
            put_off = branch.moment and branch.options[branch.taken].cost
            if not put_off and not self._foreseen(branch, self.path):
                return True
            branch.taken += 1
        return False

    def _note(self, world: World, after: Moment) -> None:
        """What the option that was taken last has done."""
        before = self.path[-1] if self.path else None
        if before and before.moment and not world.cold and (trace := before.footprints[before.taken]):
            self.summaries.note(before.moment, before.options[before.taken], trace, after)

    def _foreseen(self, branch: Branch, path: list[Branch]) -> bool:
        """Would the option that comes next lead where the search has been, other than on this very path?"""
        if branch.moment is None:
            return False
        at = branch.taken
        key = self.summaries.leads_to(branch.moment, branch.options[at], branch.footprints[at])
        known = key in self.expanded and all(other.key != key for other in path)
        self.foreseen += known
        return known

    def _straight(self, world: World, options: tuple[Option, ...], key: bytes, shape: bytes) -> int:
        """Polls in vain and time, nothing else: let them really happen, but do not branch over each of them."""
        mine = any(branch.key == key for branch in self.path)
        if not mine and (key in self.expanded or key in self.passed):
            return CUT
        self.passed.add(key)
        self.fresh.add(key)
        self._append(world, Branch(options, 0, 0, self.watched, *noted(world), key, shape))
        return 0

    def _watched(self, depth: int) -> dict[bytes, int]:
        return self.path[depth].watched if depth < len(self.path) else self.watched
