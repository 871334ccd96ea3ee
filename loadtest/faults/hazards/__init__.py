"""faults: real processes and servers, and each hazard really done to them. One hazard a file, its variants beside it.

The list is the enum `locks.hazards.Hazard`: what does `Hazard.CLOCK_JUMP` is in clock_jump.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from loadtest.faults.hazards.adversary import Adversary
from locks.hazards import Hazard

__all__ = ["HAZARDS", "Adversary"]


def _adversaries(word: Hazard) -> Iterator[type[Adversary]]:
    """Yield what the file of a hazard offers: each class with a slug of its own, in the order of the file."""
    module = import_module(f"{__name__}.{word.name.lower()}")
    for each in vars(module).values():
        ours = getattr(each, "__module__", "") == module.__name__
        if ours and isinstance(each, type) and issubclass(each, Adversary) and "slug" in vars(each):
            yield each


#: slug → what does it. Contention is what every trial has, and nobody does it.
HAZARDS: dict[str, type[Adversary]] = {
    each.slug: each for word in Hazard if word is not Hazard.CONTENTION for each in _adversaries(word)
}
