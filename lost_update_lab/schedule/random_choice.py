"""Random choices: a draw among few, from which something follows. A search tries one outcome of each.

    A: random.choice(free)  → code 7     B may draw 7 as well, or another one: two schedules, of which one is explored
    B: random.choice(free)  → code 3

So a search that finds nothing does not end in `kept`. What is drawn for the length of a sleep decides nothing else. And
draws of one place in the code that make a long number together, before the next command, are a name: a token that is
made letter by letter. A name is not drawn twice.
"""

from __future__ import annotations

from math import lgamma, log, log2
from typing import Any

from lost_update_lab.model.chance import LEAST_NAME
from lost_update_lab.model.workers import Task
from lost_update_lab.schedule.world import World

NAME_BITS = log2(LEAST_NAME)
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


def bits_of(name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> float:
    """The bits of what this function of `random` returns. A share (random(), uniform()) has more than a name."""
    given = dict(zip(_NAMES.get(name, ()), arguments, strict=False)) | keywords
    match name:
        case "choice":
            return log2(len(given["seq"]) or 1)
        case "choices" | "sample":
            return float(given.get("k", 1) * log2(len(given["population"]) or 1))
        case "shuffle":
            return float(lgamma(len(given["x"]) + 1) / log(2))
        case "randint":
            return log2(int(given["b"]) - int(given["a"]) + 1)
        case "_randbelow":
            return log2(int(given["n"]) or 1)
        case "randrange":
            return log2(len(range(*arguments)) or 1)
        case "getrandbits":
            return float(given["k"])
        case "randbytes":
            return 8 * float(given["n"])
    return NAME_BITS


_NAMES = {
    "choice": ("seq",),
    "choices": ("population", "weights", "cum_weights", "k"),
    "sample": ("population", "k"),
    "shuffle": ("x",),
    "randint": ("a", "b"),
    "_randbelow": ("n",),
    "getrandbits": ("k",),
    "randbytes": ("n",),
}
