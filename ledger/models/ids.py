"""An entry's id, drawn at random as uuid.uuid4() does, but without the checks of UUID(), which take longer."""

from __future__ import annotations

import os
from uuid import UUID, SafeUUID

_VERSION_4 = (4 << 76) | (2 << 62)
_RANDOM = ~((0xF << 76) | (3 << 62))
_set = object.__setattr__  # a UUID refuses the usual way
_UNKNOWN = SafeUUID.unknown


def fresh() -> UUID:
    """Return a new random UUID."""
    made = object.__new__(UUID)
    _set(made, "int", int.from_bytes(os.urandom(16), "big") & _RANDOM | _VERSION_4)
    _set(made, "is_safe", _UNKNOWN)
    return made
