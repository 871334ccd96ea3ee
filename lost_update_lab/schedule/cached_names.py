"""Names that a cached function has drawn, such as the token of a process:

    @functools.cache
    def me() -> str:
        return uuid.uuid4().hex

Each process has one of its own. Workers stand for processes, but their code runs in one, so the second worker is given
the name of the first. It is told once a worker sends a name that another one has drawn.
"""

from __future__ import annotations

from types import FrameType
from typing import Any

from lost_update_lab.model.chance import Drawn
from lost_update_lab.model.errors import ONE_FOR_EACH_PROCESS, Elsewhere
from lost_update_lab.model.workers import Task
from lost_update_lab.schedule.world import World

NO_MEMORY = "Workers stand for processes that have just begun, and share no memory"


def note(world: World, task: Task, frame: FrameType | None, drawn: Drawn) -> None:
    """Code at `frame` has drawn this name. Is a function under way whose results are cached?"""
    if drawn and (name := under_way(frame)):
        world.cached_names[drawn] = task.worker.index, name


def sends(world: World, task: Task, identity: bytes) -> None:
    """The worker has sent this command. Raises Elsewhere if it contains a name that another worker has drawn."""
    for drawn, (by, name) in world.cached_names.items():
        if by != task.worker.index and any(form in identity for form in drawn):
            told = f"{name}() is cached, and draws a random number"
            raise Elsewhere(f"it keeps state that workers share: {told}. {NO_MEMORY}", ONE_FOR_EACH_PROCESS)


def under_way(frame: FrameType | None) -> str:
    """The function under way whose results are cached (functools.cache). "": there is none."""
    while frame:
        name = frame.f_code.co_qualname
        owner: Any = frame.f_globals.get(name.partition(".")[0])
        for part in name.split(".")[1:]:
            owner = getattr(owner, part, None)
        kept = getattr(owner, "__wrapped__", None) if hasattr(owner, "cache_info") else None
        if kept and getattr(kept, "__code__", None) is frame.f_code:
            return f"{frame.f_globals.get('__name__')}.{name}"
        frame = frame.f_back
    return ""
