"""What the two or three workers of an exploration do: one posting each, the same in every schedule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loadtest.workloads.base import Legs, Opening


@dataclass(frozen=True, slots=True)
class Workload:
    """`legs(index)`: the posting of worker number `index`."""

    slug: str
    openings: tuple[Opening, ...]
    legs: Callable[[int], Legs]
    law: str


def _deposit(index: int) -> Legs:
    return (("A0001", 10 * (index + 1)),)


def _take_one(index: int) -> Legs:
    return (("A0001", -1),)


def _transfer(index: int) -> Legs:
    """Every other worker transfers the other way round, so that their orders are opposite."""
    first, second = ("A0001", "A0002") if index % 2 == 0 else ("A0002", "A0001")
    return ((first, -10 * (index + 1)), (second, 10 * (index + 1)))


WORKLOADS: dict[str, Workload] = {
    each.slug: each
    for each in (
        Workload("deposits", (Opening("A0001", 100),), _deposit, "every acknowledged deposit is there, once"),
        Workload("stock", (Opening("A0001", 1, 0),), _take_one, "one piece in stock, sold once at most"),
        Workload(
            "transfers",
            (Opening("A0001", 100), Opening("A0002", 100)),
            _transfer,
            "money moves, and is neither made nor destroyed",
        ),
    )
}
