"""Writes the programs of a family. The same seed gives the same programs."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import chain
from typing import Any

from tests.lost_update_lab.differential.commands import Part, Program
from tests.lost_update_lab.differential.families import FAMILIES, Family, Faults


@dataclass(frozen=True)
class Case:
    """`programs`: for each worker, the program of each of its operations."""

    family: Family
    setup: Any
    programs: tuple[tuple[Program, ...], ...]
    faults: Faults


def case(name: str, seed: int) -> Case:
    chance, family = random.Random(f"{name} {seed}"), FAMILIES[name]
    faults, setup, writer = chance.choice(family.faults), chance.choice(family.setups), Writer(family, chance)
    made = [writer.operations() for _ in range(family.workers)]
    if family.together:
        made = [(writer.with_several(),)]
        if chance.random() < 0.7:
            writer.is_plain = True
            made.insert(chance.randint(0, 1), (writer.connected(),))
    return Case(family, setup, tuple(made), faults)


class Writer:
    def __init__(self, family: Family, chance: random.Random) -> None:
        self.family, self.chance = family, chance
        self.is_plain = False  # it writes what stands beside a worker with several tasks
        self.sleeps = family.waits and (not family.looks or chance.random() < 0.4)

    def operations(self) -> tuple[Program, ...]:
        return tuple(self.program(self.family.most) for _ in range(self.family.operations))

    def with_several(self) -> Program:
        """Two threads, or tasks, side by side, and something after them."""
        two = tuple(self.program(self.family.most if self.chance.random() < 0.5 else 1) for _ in range(2))
        return ((self.chance.choice(self.family.together), two), *self.connected(1))

    def connected(self, most: int = 0) -> Program:
        return (("connected", self.program(most or self.family.most)),)

    def program(self, most: int) -> Program:
        left, parts = self.chance.randint(1, most), list[Part]()
        if self.family.looks and self.chance.random() < 0.7:
            parts.append(self.chance.choice(self.family.looks))
        while left > 0:
            kind = self.chance.choice(self._kinds(left))
            written, used = getattr(self, f"_{kind}")(left)
            parts += written
            left -= used or self.chance.random() < 0.5
        return tuple(parts)

    def _kinds(self, left: int) -> list[str]:
        """What may come next, the likely ones several times."""
        family = self.family
        kinds = ["command"] * 5 + ["branch"] * 3 + ["sleep"] * self.sleeps
        if family.looks:
            kinds += ["look"] * 4 + ["looks_and_acts", "compare", "compare"]
        if left > 1:
            kinds += ["transaction"] * (5 if not family.looks else 2) * bool(family.levels)
            kinds += ["finally"] + ["loop"] * (not family.looks)
        if family.of_asyncio and not self.is_plain:
            kinds += ["at_once"] * 4 + ["lock", "lock", "wait", "timeout", "timeout"]
        if family.with_events and not self.is_plain:
            kinds += ["of_event"] * 4 + ["wait", "lock"]
        return kinds

    def _any(self) -> Part:
        of, chance = self.family, self.chance
        among = chance.choices([of.reads, of.locks or of.writes, of.writes], [2, 3, 4])[0]
        return chance.choice(among)

    def _few(self, most: int) -> Program:
        found = []
        for _ in range(self.chance.randint(1, most)):
            if self.family.looks and self.chance.random() < 0.3:
                found.append(self.chance.choice(self.family.looks))
            found.append(self._any())
        return tuple(found)

    # -- parts, with the number of commands that they send ----------------------------------------------------------

    def _command(self, left: int) -> tuple[list[Part], int]:
        return [self._any()], 1

    def _sleep(self, left: int) -> tuple[list[Part], int]:
        return [("sleep", self.chance.choice([0.05, 0.3, 0.6]))], 1

    def _look(self, left: int) -> tuple[list[Part], int]:
        return [self.chance.choice(self.family.looks)], 0

    def _looks_and_acts(self, left: int) -> tuple[list[Part], int]:
        return [self.chance.choice(self.family.looks), self._any()], 1

    def _compare(self, left: int) -> tuple[list[Part], int]:
        return [self.chance.choice(self.family.compares), ("if", (self._any(),))], 1

    def _branch(self, left: int) -> tuple[list[Part], int]:
        kind = self.chance.choice(["if", "try", "more"])
        if kind == "more":
            return [("more", self.chance.choice([0, 5, 100, 105]), (self._any(),))], 1
        inner = self._few(min(2, left))
        return [(kind, inner)], len(inner)

    def _loop(self, left: int) -> tuple[list[Part], int]:
        tried = [each for each in chain(self.family.writes, self.family.locks) if each[-1] == "done"]
        return [("loop", self.chance.choice(tried), self.chance.choice([0.05, 0.3]), 2)], 2

    def _finally(self, left: int) -> tuple[list[Part], int]:
        return [("finally", (self._any(),), (self._any(),))], 2

    def _transaction(self, left: int) -> tuple[list[Part], int]:
        chance, inner = self.chance, self._few(min(3, left))
        sent = 1 + len(inner)
        if not self.family.looks and chance.random() < 0.2:
            inner = (("savepoint", inner),)
        made = (
            "transaction",
            chance.choice(self.family.levels),
            inner,
            chance.choice(["COMMIT"] * 5 + ["ROLLBACK"]),
        )
        return [("try", (made,)) if chance.random() < 0.4 else made], sent

    def _at_once(self, left: int) -> tuple[list[Part], int]:
        return [(self.chance.choice(["put", "take", "yield", "set"]),)], 0

    def _of_event(self, left: int) -> tuple[list[Part], int]:
        return [(self.chance.choice(["put", "take", "set", "clear", "asks", "notice"]),)], 0

    def _wait(self, left: int) -> tuple[list[Part], int]:
        kinds = ["wait", "waits_for_notice"] if self.family.with_events else ["wait"]
        return [(self.chance.choice(kinds), self.chance.choice([0.05, 0.4]))], 1

    def _lock(self, left: int) -> tuple[list[Part], int]:
        inner = self._few(min(2, left))
        return [("lock", inner)], len(inner)

    def _timeout(self, left: int) -> tuple[list[Part], int]:
        inner = self._few(min(2, left))
        return [("timeout", self.chance.choice([0.0, 0.05, 0.3]), inner)], len(inner)
