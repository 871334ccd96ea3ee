"""Stand-ins for what a hazard's `strike` is given: without servers and workers."""

from types import SimpleNamespace
from typing import Any

from loadtest.faults.hazards.adversary import Party


class Someone(SimpleNamespace):
    """A worker with what the test gives it."""

    __hash__ = object.__hash__  # type: ignore[assignment]


class Struck(Party):
    """Strikes nothing."""

    slug = "struck"

    def event(self, site: Any) -> str:
        return "it happened"


class Late:
    """A worker that does not get inside in time."""

    pid, answer, busy = 1, None, True

    def __init__(self) -> None:
        self.told: list[Any] = []

    def begins(self, *order: Any) -> None: ...

    def hears(self, seconds: float) -> None: ...

    def tells(self, *word: Any) -> None:
        self.told.append(word)


def scene_of(**fields: Any) -> Any:
    """A scene in which one worker gets inside, and which notes what is done with it."""
    done: list[str] = []
    usual = {
        "book": SimpleNamespace(store="postgres", pk="book"),
        "clocks": {},
        "site": None,
        "struck": set(),
        "lease": 10.0,
        "leases": 2,
        "pace": 0.0,
        "done": done,
        "hire": lambda **_: SimpleNamespace(busy=False),
        "turned_away": lambda worker: "",
        "victim": lambda *_: "victim",
        "held": lambda _: "held",
        "keys": lambda: {"lock": "PTTL 5"},
        "note": lambda told: None,
        "fault": lambda told: None,
        "hazard_comes": lambda: None,
        "prove": lambda told: done.append("proof"),
        "ahead": lambda _: done.append("rivals"),
        "rush": lambda: done.append("rivals"),
        "wait": lambda *_: True,
        "go_on": lambda _: done.append("go on"),
    }
    return SimpleNamespace(**(usual | fields))
