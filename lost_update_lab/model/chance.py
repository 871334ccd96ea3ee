"""A worker's random numbers: the same in every schedule, and recognised wherever one of them serves as a name."""

from __future__ import annotations

import random
from base64 import b64encode, urlsafe_b64encode
from dataclasses import dataclass, field
from math import log2
from typing import Any
from uuid import UUID

#: a number below this is no name: it may be drawn twice
LEAST_NAME = 1 << 32
NAME_BITS = log2(LEAST_NAME)
_FEWEST_BYTES = 4


class Moderate(random.Random):
    """Never returns an extreme share. A waiter that sleeps for a hundredth of the usual time polls a hundred times as
    often, and sees nothing else.

    `bits`: how many bits it has given out. A share has as many as a name, whatever is made of it, but for choices()."""

    bits = 0.0

    def random(self) -> float:
        self.bits += NAME_BITS
        return 0.25 + super().random() / 2

    def getrandbits(self, k: int) -> int:  # a subclass that overrides random() loses this method
        self.bits += k
        return super().getrandbits(k)

    def _randbelow(self, n: int) -> int:
        given = self.bits
        below: int = self._randbelow_with_getrandbits(n)  # type: ignore[attr-defined]  # as without this method
        self.bits = given + log2(n or 1)
        return below

    def choices(self, population: Any, *args: Any, **keywords: Any) -> list[Any]:
        found = super().choices(population, *args, **keywords)
        self.bits = len(found) * log2(len(population) or 1)
        return found


#: a number that was drawn, in every form in which it may be written down; (): it names nothing
Drawn = tuple[bytes, ...]


@dataclass(slots=True)
class Chance:
    """How many random numbers a worker has drawn, in all and at each place of its code. `seed`: by what it has seeded
    them; "": by nothing. `salt`: with another one, all that are not seeded are other ones."""

    draws: int = 0
    places: dict[str, int] = field(default_factory=dict)
    seed: str = ""
    salt: str = ""

    def copy(self) -> Chance:
        return Chance(self.draws, self.places.copy(), self.seed, self.salt)

    def seeded(self, by: object) -> None:
        """From now on it draws what every process draws that has seeded by this."""
        self.seed = "" if by is None else repr(by)
        self.places.clear()


@dataclass
class Try:
    """What a worker did since its main thread last waited; or what it did before the wait that it is in."""

    drawn: tuple[Drawn, ...] = ()
    sent: tuple[bytes, ...] = ()
    #: another worker was told one of the names
    told: bool = False
    #: what the previous try had sent, without its names; this try, which is over, did the same
    before: tuple[bytes, ...] = ()
    repeats: bool = False
    #: how many numbers were drawn when this try began; and, when this one is over, when the previous one began
    begin: Chance = field(default_factory=Chance)
    back: Chance = field(default_factory=Chance)


def forms(value: Any) -> Drawn:
    """The forms in which this random number may be recognised, if it is a name."""
    if isinstance(value, bytes) and len(value) >= _FEWEST_BYTES:
        found = [value, repr(value)[2:-1].encode(), value.hex().encode(), value.hex().upper().encode()]
        found += [b64encode(value).rstrip(b"="), urlsafe_b64encode(value).rstrip(b"=")]
        return (*found, *_forms_of_uuid(int.from_bytes(value, "big"), len(value)))
    if isinstance(value, int) and value >= LEAST_NAME:
        size = 16 if value.bit_length() > 64 else 8
        return (str(value).encode(), b"%x" % value, b"%X" % value, *_forms_of_uuid(value, size))
    return ()


def _forms_of_uuid(value: int, size: int) -> list[bytes]:
    if size != 16 or value >= 1 << 128:
        return []
    made = [UUID(int=value), *(UUID(int=value, version=version) for version in (1, 4))]
    return [form.encode() for each in made for form in (str(each), each.hex)]
