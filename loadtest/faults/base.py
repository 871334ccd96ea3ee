"""The contract of a hazard: what it does, how it proves that it fired, what it cannot touch, how it cleans up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

from locks.hazards import Hazard

if TYPE_CHECKING:
    from loadtest.faults.scene import Scene
    from loadtest.faults.site import Site


class Adversary(ABC):
    """One thing that goes wrong. An object lives for one cell of the matrix: one strategy, one strike."""

    #: the name in commands, JSON and the matrix
    slug: ClassVar[str]
    #: the claim that it puts to the test
    word: ClassVar[Hazard]
    #: does it strike a server that other cells use? Then no other cell runs at the same time
    alone: ClassVar[bool] = False
    #: seconds; None: the shortest that the strategy's lock can have, for hazards that outlast it
    lease: ClassVar[float | None] = None
    #: does it bring a Valkey of its own?
    own_valkey: ClassVar[bool] = False

    def not_applicable(self, strategy: str) -> str | None:
        """Return why it cannot touch `strategy`, or None if it can."""
        return None

    @contextmanager
    def site(self, shared: Site) -> Iterator[Site]:
        """The servers of the cell: those of the whole run, unless the hazard needs its own."""
        yield shared

    @abstractmethod
    def strike(self, scene: Scene) -> None:
        """Do it to real processes and servers, and say by `scene.prove` what was seen of it."""
