"""All positions of a small search, and all moves between them: what /play lets somebody walk through.

A search leaves out what cannot matter: it does not take a move of which it knows that it leads where it has been. Here
nothing is left out, every move of every position is executed once, by the strategy's real code on real servers, and
at each position the servers are looked at. So a walk shows what was executed, and nothing else.

    search → decision (a state, by the search's own key) → a position; the transition that is taken → a move
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from ledger.addresses import BASE_DIR
from loadtest.explorer.system import LedgerSystem
from loadtest.findings.gloss import Gloss
from lost_update_lab.harness import Harness
from lost_update_lab.model.commands import Step, takes
from lost_update_lab.model.transitions import STEPS, Transition
from lost_update_lab.model.workers import State, Task, WorkerProcess
from lost_update_lab.runs.place import beside
from lost_update_lab.schedule import state
from lost_update_lab.schedule.world import World
from lost_update_lab.search.search import Search
from lost_update_lab.search.stack import Branch

#: where a command comes from, the most telling first
OURS = tuple(str(BASE_DIR / name) for name in ("ledger", "locks"))


@dataclass
class Position:
    """`held`: what the servers held, and who was where. `moves`: by transition, in the order in which they are
    offered. `end`: the word and the sentences, if no move is left."""

    at: int
    held: dict[str, Any]
    moves: dict[Transition, dict[str, Any]] = field(default_factory=dict)
    end: dict[str, Any] | None = None


class Graphing(Search):
    """A search that takes every move of every position once, and writes down where it leads."""

    def __init__(self, harness: Harness, gloss: Gloss) -> None:
        super().__init__(harness)
        self.gloss = gloss
        self.positions: list[Position] = []
        self._place: dict[Any, int] = {}
        self._of: dict[int, tuple[Any, int]] = {}  # id of what a decision noted → that, and its position
        self._counts: list[int] = []
        self._here = 0
        self._writers: dict[tuple[str, str, str], str] = {}
        self._added: list[tuple[Position, Transition]] = []

    # -- what is not left out -----------------------------------------------------------------------------------------

    def _foreseen(self, branch: Branch, path: list[Branch]) -> bool:
        return False

    def _choose(self, world: World, transitions: Sequence[Transition]) -> int:
        self._counts[self.depth :] = [len(world.steps)]
        return super()._choose(world, transitions)

    def _extend(self, world: World, transitions: tuple[Transition, ...]) -> int:
        self._here = self._position(state.moment(world).key, world)
        self._moved(world, self._here)
        found = self.positions[self._here]
        for each in transitions:
            if each not in found.moves:
                found.moves[each] = self._offered(world, each)
                self._added.append((found, each))
        return super()._extend(world, transitions)

    def _append(self, world: World, branch: Branch) -> None:
        super()._append(world, branch)
        self._of[id(branch.places)] = branch.places, self._here

    def _run(self) -> World:
        known, self._added = len(self.positions), []
        run = super()._run()
        if run.warming_up:  # it is executed again, and then without loading a script
            for position, transition in self._added:
                position.moves.pop(transition, None)
            self._place = {key: at for key, at in self._place.items() if at < known}
            del self.positions[known:]
        elif not run.cut:
            self._ended(run)
        return run

    # -- writing it down ----------------------------------------------------------------------------------------------

    def _ended(self, run: World) -> None:
        judgement = self.harness.judge(run)
        if not run.stuck:
            key = "end", run.shared(), judgement, tuple(sorted(run.spent)), _workers(run)
            self._here = self._position(key, run)
            self._moved(run, self._here)
        told = [self.gloss.sentence(each) for each in judgement.sentences]
        self.positions[self._here].moves.clear()
        self.positions[self._here].end = {"word": judgement.word, "told": told}

    def _moved(self, world: World, to: int) -> None:
        """The move that was taken last has led here."""
        if not self.path:
            return
        before = self.path[-1]
        _, at = self._of[id(before.places)]
        move = self.positions[at].moves.get(before.transitions[before.taken])
        if move is not None and "to" not in move:
            steps = self.gloss.steps(world.steps[self._counts[len(self.path) - 1] :])
            move["to"], move["steps"] = to, [(each.worker, each.command, each.reply) for each in steps]

    def _position(self, key: Any, world: World) -> int:
        if key not in self._place:
            self._place[key] = len(self.positions)
            self.positions.append(Position(world.now, self._held(world)))
        return self._place[key]

    def _held(self, world: World) -> dict[str, Any]:
        system = self.harness.system
        assert isinstance(system, LedgerSystem)
        with beside():
            keys = [
                {
                    "server": server,
                    "key": key,
                    "value": value,
                    "ttl_ms": None if ends is None else max(0, (ends - world.now) // 1000),
                    "by": self._owner(world.steps, (server, key, value)),
                }
                for each in world.servers.values()
                for server, key, value, ends in each.listing()
            ]
            shown = {**system.show(), "keys": keys}
            entries = system.entries()
        waiting = {task.name: task.op.text for task in world.waiting_line if task.op}
        told = self.gloss.state({**shown, "waiting": waiting})
        return {**told, "entries": entries, "workers": dict(_workers(world))}

    def _owner(self, steps: Sequence[Step], row: tuple[str, str, str]) -> str:
        """Who wrote what a key holds: the last to take it by a plain command, else the one whose step left it."""
        last = steps[-1].worker if steps else ""
        found = self._writers.setdefault(row, last)
        return next((each.worker for each in reversed(steps) if takes(each) == row[1]), found)

    def _offered(self, world: World, transition: Transition) -> dict[str, Any]:
        move: dict[str, Any] = {"kind": transition.kind.value, "who": transition.who}
        if transition.kind in STEPS:
            task = world.task(transition.who)
            move["command"] = self.gloss.of_command(task.op.text) if task.op else ""
            move["line"] = _line(task)
        return move


def _workers(world: World) -> tuple[tuple[str, str], ...]:
    return tuple((worker.name, _stands(worker)) for worker in world.workers)


def _stands(worker: WorkerProcess) -> str:
    if worker.crashed:
        return "dead"
    if worker.paused:
        return "paused"
    if worker.finished:
        return "failed" if worker.error else "done"
    return {State.BLOCKED: "waits", State.WAIT: "sleeps"}.get(worker.main.state, "ready")


def _line(task: Task) -> str:
    """The line of the lock, of the strategy or of its store that sends the command: `file:number: source`."""
    frame = sys._current_frames().get(task.thread.ident or 0) if task.thread else None
    for each in _outwards(frame):
        path = each.f_code.co_filename
        if path.startswith(OURS):
            with open(path, encoding="utf-8") as file:
                lines = file.read().splitlines()
            name = path.removeprefix(f"{BASE_DIR}/")
            return f"{name}:{each.f_lineno}: {lines[each.f_lineno - 1].strip()}"
    return ""


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame:
        yield frame
        frame = frame.f_back


def packed(graph: Graphing, **about: Any) -> dict[str, Any]:
    """Return the graph as JSON: what positions share stands once. Raises RuntimeError for a move that was never
    executed: the search was cut short."""
    held: dict[str, int] = {}
    states: list[Any] = []
    texts: dict[str, int] = {}

    def once(text: str) -> int:
        return texts.setdefault(text, len(texts))

    nodes = []
    for position in graph.positions:
        name = repr(position.held)
        if name not in held:
            held[name] = len(states)
            states.append(position.held)
        moves = [
            [
                each["kind"],
                each["who"],
                once(each.get("command", "")),
                once(each.get("line", "")),
                each["to"],
                [[who, once(command), once(reply)] for who, command, reply in each["steps"]],
            ]
            for each in position.moves.values()
            if "to" in each
        ]
        node: dict[str, Any] = {"at": position.at // 1000, "held": held[name], "moves": moves}
        nodes.append({**node, "end": position.end} if position.end else node)
    return {**about, "nodes": nodes, "states": states, "texts": list(texts)}
