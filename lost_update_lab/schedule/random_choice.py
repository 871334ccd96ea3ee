"""Random choices: a draw among few, from which something follows. A search tries one outcome of each.

    A: random.choice(free)  → code 7     B may draw 7 as well, or another one: two schedules, of which one is explored
    B: random.choice(free)  → code 3

So a search that finds nothing does not end in `kept`. What is drawn for the length of a sleep decides nothing else. And
draws of one place in the code that make a long number together, before the next command, are a name: a token that is
made letter by letter. A name is not drawn twice.
"""

from __future__ import annotations

from lost_update_lab.model.chance import NAME_BITS
from lost_update_lab.model.workers import Task
from lost_update_lab.schedule.world import World

DECIDES = "a random draw among few decides, and only one outcome of it was explored"


def drew(task: Task, place: str, bits: float) -> None:
    """Code at this place has drawn one of 2 ** bits."""
    task.choices[place] = task.choices.get(place, 0) + bits


def sleeps(task: Task) -> None:
    """It has drawn for how long."""
    task.choices.clear()


def acts(world: World, task: Task) -> None:
    """It is about to send a command, or has ended."""
    if task.choices:
        few = [place for place, bits in task.choices.items() if 0 < bits < NAME_BITS]
        world.random_choice = world.random_choice or next(iter(few), "")
        task.choices.clear()
