"""A worker's random numbers: the same in every schedule, and found again wherever one of them serves as a name."""

from __future__ import annotations

import random
from base64 import b64encode, urlsafe_b64encode
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

#: a number below this is no name: it may be drawn twice
LEAST_NAME = 1 << 32
_FEWEST_BYTES = 4


class Moderate(random.Random):
    """Never an extreme share: who sleeps for a hundredth of the usual time polls a hundred times as often, and sees
    nothing else."""

    def random(self) -> float:
        return 0.25 + super().random() / 2

    def getrandbits(self, k: int) -> int:  # whoever overrides random() loses it
        return super().getrandbits(k)


#: a number that was drawn, in all forms in which it may be written down; (): it names nothing
Drawn = tuple[bytes, ...]


@dataclass(slots=True)
class Chance:
    """How far a worker is in its random numbers: how many were drawn, in all, and at each place of its code."""

    draws: int = 0
    places: dict[str, int] = field(default_factory=dict)

    def copy(self) -> Chance:
        return Chance(self.draws, self.places.copy())


@dataclass(slots=True)
class Attempt:
    """What a worker did since its main thread last waited, or before that waits now."""

    drawn: tuple[Drawn, ...] = ()
    sent: tuple[bytes, ...] = ()
    #: another worker was told one of the names
    told: bool = False
    #: what the attempt before had sent, its names left out; this one, which is over, did the same
    before: tuple[bytes, ...] = ()
    repeats: bool = False
    #: where the worker's numbers were when this attempt began; and the one before, when this one is over
    begin: Chance = field(default_factory=Chance)
    back: Chance = field(default_factory=Chance)


def forms(value: Any) -> Drawn:
    """In which forms this random number may be found again, where it is a name."""
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
