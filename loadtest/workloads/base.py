"""The contract of a workload: what the clients do. Pure Python, because the swarm uses it without Django.

A client asks `posting` for its next operation:

    legs   a posting: (account, amount) for each account that it changes
    ()     a look: it reads what `look` names and records what `seen` makes of the answer; it changes nothing
    None   there is nothing left to do

A workload may have a law beyond the books (loadtest/verdict/laws.py). `breaches` and `doubts` check it, given all calls
of all clients.
"""

from __future__ import annotations

import inspect
import random
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from loadtest.history.calls import Call
from loadtest.verdict.evidence import Doubt
from loadtest.verdict.laws import Breach

#: minor units, or pieces: millions of them fit into a BIGINT
LARGEST_SUM = 10**12
MOST_ACCOUNTS = 10_000


@dataclass(frozen=True, slots=True)
class Opening:
    """An account as a book is opened with it. Amounts in minor units."""

    account: str
    opening: int = 0
    floor: int | None = None


Legs = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a workload, as its `options` and its constructor declare it. `kind`: int, float or bool."""

    name: str
    about: str
    kind: type
    default: Any


@dataclass(frozen=True, slots=True)
class Turns:
    """What an exploration's two or three workers do: one posting each, the same in every schedule. `legs(index)` is the
    posting of worker number `index`."""

    openings: tuple[Opening, ...]
    legs: Callable[[int], Legs]


class Workload(ABC):
    """What the clients of a trial do to its accounts."""

    slug: ClassVar[str]
    title: ClassVar[str]
    #: what must hold at the end, in one sentence
    law: ClassVar[str]
    #: its own options, each described in a few words (for docs/reference.md)
    options: ClassVar[Mapping[str, str]] = {}
    #: is "busy" a proper answer (another client is already doing it), and not a denial of service?
    busy_is_an_answer: ClassVar[bool] = False

    #: what the explorer's workers do; None: `explore` does not offer this workload
    turns: ClassVar[Turns | None] = None
    #: do background workers import files meanwhile?
    imports_files: ClassVar[bool] = False
    #: the fewest client processes that it needs
    processes: ClassVar[int] = 1

    def __init__(self, accounts: int = 1) -> None:
        """`accounts`: 1 makes a hot spot, more spread the callers. Raises ValueError."""
        if not 1 <= accounts <= MOST_ACCOUNTS:
            raise ValueError(f"accounts: 1 to {MOST_ACCOUNTS}, not {accounts}")
        self.accounts = accounts

    @classmethod
    def declared(cls) -> list[Option]:
        """Return the workload's options: the words from `options`, types and defaults from the constructor."""
        given = inspect.signature(cls.__init__, eval_str=True).parameters
        return [
            Option(name, re.sub(r" \([^()]*\)$", "", about), given[name].annotation, given[name].default)
            for name, about in cls.options.items()
        ]

    def numbers(self) -> list[str]:
        """Return the numbers of its accounts."""
        return [f"A{number:04d}" for number in range(1, self.accounts + 1)]

    def any_account(self, chance: random.Random) -> str:
        """Return the number of one of its accounts."""
        return f"A{chance.randrange(self.accounts) + 1:04d}"

    @abstractmethod
    def openings(self) -> list[Opening]:
        """Return the accounts of a new book."""

    @abstractmethod
    def posting(self, chance: random.Random) -> Legs | None:
        """Return the next operation of one client."""

    def due(self) -> float:
        """Return when the last operation from `posting` is due, in seconds after this client's start."""
        return 0.0

    def look(self, chance: random.Random) -> str:
        """Return what a look reads: a path below the book's address."""
        raise NotImplementedError

    def seen(self, answer: Mapping[str, Any]) -> int:
        """Return the number that a look records from the ledger's answer."""
        raise NotImplementedError

    def breaches(self, calls: Sequence[Call]) -> list[Breach]:
        """Return how the workload's own law was broken."""
        return []

    def doubts(self, calls: Sequence[Call]) -> list[Doubt]:
        """Return why these calls could not have broken the law."""
        return []


def share(name: str, value: Any) -> float:
    """Return `value` as a share from 0 to 1, both included. Raises ValueError."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise ValueError(f"{name}: a share from 0 to 1, not {value!r}")
    return float(value)


def whole(name: str, value: Any, least: int, most: int = LARGEST_SUM) -> int:
    """Return `value` if it is a whole number from `least` to `most`, both included. Raises ValueError."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{name}: a whole number from {least} to {most}, not {value!r}")
    return value
