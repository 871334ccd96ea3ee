"""What a search takes at each decision: along its path the same as before, then something new."""

from __future__ import annotations

from collections.abc import Sequence

from lost_update_lab.model.errors import REPORT_IT, Broken, NotTheSame
from lost_update_lab.model.transitions import Kind, Transition
from lost_update_lab.schedule import state, virtual_clock
from lost_update_lab.schedule.decisions import CUT
from lost_update_lab.schedule.state import Moment
from lost_update_lab.schedule.world import World
from lost_update_lab.search.fault_order import FaultOrder
from lost_update_lab.search.independence import Independence, footprints
from lost_update_lab.search.stack import Branch, noted


class Choosing:
    """The path of a search, and the states that it has seen."""

    def __init__(self, full: bool, fault_order: FaultOrder) -> None:
        self.full, self.fault_order = full, fault_order
        self.path: list[Branch] = []
        self.depth = self.foreseen = 0
        self.expanded: set[bytes] = set()
        self.passed: set[bytes] = set()
        self.fresh: set[bytes] = set()
        self.watched: dict[bytes, int] = {}
        self.independence = Independence()

    def _choose(self, world: World, transitions: Sequence[Transition]) -> int:
        depth, self.depth = self.depth, self.depth + 1
        if depth < len(self.path):
            branch = self.path[depth]
            if branch.transitions != tuple(transitions):
                there, now = ([str(o) for o in each] for each in (branch.transitions, transitions))
                raise NotTheSame(f"at decision {depth} there were {there}, now {now}")
            world.watched = self._watched(depth + 1)
            branch.passed(world)
            return branch.taken if branch.taken <= branch.last else CUT
        return self._extend(world, tuple(transitions))

    def _extend(self, world: World, transitions: tuple[Transition, ...]) -> int:
        if virtual_clock.only_polls(world):
            resume = next((i for i, o in enumerate(transitions) if o.kind is Kind.RESUME), None)
            if resume is None:
                world.stuck = True
                return 0
            self._append(world, Branch(transitions, resume, resume, world.watched, *noted(world)))
            return resume
        if not self.full:
            self._append(world, Branch(transitions, 0, len(transitions) - 1, world.watched, *noted(world)))
            return 0
        moment = state.moment(world)
        self._note(world, moment)
        key, shape = moment.key, state.shape(world) if world.beyond else b""
        seen = key in self.expanded or key in self.passed
        again = seen and any(branch.key == key for branch in self.path)
        if (world.collapsed and again) or (shape and any(branch.shape == shape for branch in self.path)):
            return self._straight(world, transitions, key, shape)
        if key in self.expanded:
            if again:
                raise Broken(
                    "a moment came again on its own way: something is missing in the state", REPORT_IT
                )
            return CUT
        self.expanded.add(key)
        self.fresh.add(key)
        traces = footprints(world, moment, transitions)
        branch = Branch(
            transitions, 0, len(transitions) - 1, world.watched, *noted(world), key, shape, moment, traces
        )
        self._append(world, branch)
        self.fault_order.put_off(self.path)
        return branch.taken if self._is_open(branch) else CUT

    def _append(self, world: World, branch: Branch) -> None:
        branch.at = world.now
        branch.passed(world)
        self.path.append(branch)

    def _is_open(self, branch: Branch) -> bool:
        """Move to the next transition that is not put off and leads to a new state. Returns whether there is one."""
        while branch.taken <= branch.last:
            put_off = branch.moment and branch.transitions[branch.taken].cost
            if not put_off and not self._foreseen(branch, self.path):
                return True
            branch.taken += 1
        return False

    def _note(self, world: World, after: Moment) -> None:
        """Note what the last transition has done."""
        before = self.path[-1] if self.path else None
        if before and before.moment and not world.warming_up and (trace := before.footprints[before.taken]):
            self.independence.note(before.moment, before.transitions[before.taken], trace, after)

    def _foreseen(self, branch: Branch, path: list[Branch]) -> bool:
        """Would the next transition lead to a state that the search has visited, other than on this very path?"""
        if branch.moment is None:
            return False
        at = branch.taken
        key = self.independence.leads_to(branch.moment, branch.transitions[at], branch.footprints[at])
        known = key in self.expanded and all(other.key != key for other in path)
        self.foreseen += known
        return known

    def _straight(self, world: World, transitions: tuple[Transition, ...], key: bytes, shape: bytes) -> int:
        """Only polls in vain and time are left: let them really happen, but do not branch over each of them."""
        mine = any(branch.key == key for branch in self.path)
        if not mine and (key in self.expanded or key in self.passed):
            return CUT
        self.passed.add(key)
        self.fresh.add(key)
        on = virtual_clock.polls_on(world, transitions)
        self._append(world, Branch(transitions, on, on, self.watched, *noted(world), key, shape))
        return on

    def _watched(self, depth: int) -> dict[bytes, int]:
        return self.path[depth].watched if depth < len(self.path) else self.watched
