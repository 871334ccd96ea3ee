"""What a schedule did to the servers, step by step: what the system shows, every key with the time that its lease has
left, and which worker waits in a server for which.

This is recorded in one more execution of a known schedule. The search itself does not look.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lost_update_lab.harness import Harness
from lost_update_lab.harness.play import play
from lost_update_lab.model.commands import Step, takes
from lost_update_lab.model.server import Server
from lost_update_lab.model.system import SystemUnderTest
from lost_update_lab.runs.found import Found
from lost_update_lab.runs.place import beside
from lost_update_lab.schedule.schedule_id import Diverged, exactly
from lost_update_lab.schedule.world import World


class StateRecorder:
    """Looks at the servers after each step, in virtual time. `states`: the opening state, and one for each step."""

    def __init__(self, system: SystemUnderTest) -> None:
        self.system, self.states = system, list[dict[str, Any]]()
        self._values: dict[tuple[str, str], str] = {}
        self._owners: dict[tuple[str, str], str] = {}

    def opening(self, servers: Mapping[str, Server]) -> None:
        """The state before the first step."""
        self.system.reset(set(servers))
        for server in servers.values():
            server.begin()
        self._look(servers, 0, Step(0, "", "", "opening", "", "", 0), {})

    def __call__(self, run: World, step: Step) -> None:
        waiting = {task.name: task.op.text for task in run.waiting_line if task.op}
        with beside():
            self._look(run.servers, run.now, step, waiting)

    def _look(self, servers: Mapping[str, Server], now: int, step: Step, waiting: dict[str, str]) -> None:
        keys = [row for server in servers.values() for row in server.listing()]
        told = [
            {
                "server": server,
                "key": key,
                "value": value,
                "ttl_ms": None if ends is None else max(0, (ends - now) // 1000),
                "by": self._by(step, (server, key), value),
            }
            for server, key, value, ends in keys
        ]
        self._values = {(server, key): value for server, key, value, _ in keys}
        self.states.append({**self.system.show(), "keys": told, "waiting": waiting})

    def _by(self, step: Step, place: tuple[str, str], value: str) -> str:
        """The worker that wrote what the key holds now: its step changed the value, or wrote the same one again."""
        if self._values.get(place) != value or takes(step) == place[1]:
            self._owners[place] = step.worker
        return self._owners.get(place, "")


def witnessed(harness: Harness, watched: dict[bytes, int], found: Found) -> Found:
    """Execute `found` once more, and return it with the state before its first step and after each step. If the
    schedule did not come out the same, return it as it was."""
    recorder = StateRecorder(harness.system)
    recorder.opening(harness.servers)
    try:
        with harness.unnoted():
            again, _ = play(harness, watched, exactly(found.choices), recorder)
    except Diverged:
        return found
    same = (again.word, again.transitions) == (found.word, found.transitions)
    return replace(again, states=tuple(recorder.states)) if same else found
