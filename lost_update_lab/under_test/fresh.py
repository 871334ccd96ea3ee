"""Times of day and random keys: those of the opening state and of the arguments are constants, all others are fresh.

What is fresh is another one in each run, and its value means nothing. A constant does mean something: two bookings of
one slot are not two bookings of two slots.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

NOW, RANDOM = "‹now›", "‹random›"
UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^\s\"'\\,;)\]}]*")


def constants(texts: Iterable[str]) -> frozenset[str]:
    """The times and random keys in these texts, each in one form."""
    found = set[str]()
    for text in texts:
        found |= {key_of(each) for each in UUID.findall(text)}
        found |= {_moment(each) for each in _TIME.findall(text)}
    return frozenset(found)


def key_of(uuid: str) -> str:
    """A random key in the form in which `constants` has it."""
    return uuid.replace("-", "").lower()


def _moment(time: str) -> str:
    """PostgreSQL writes the same time in another form than Python."""
    try:
        moment = datetime.fromisoformat(time)
    except ValueError:
        return time
    return (moment.astimezone(UTC) if moment.tzinfo else moment).isoformat()


def timeless(text: str, known: Collection[str] | None) -> str:
    """The text without its fresh times. `known`: the constants; None: all are."""
    if known is None:
        return text
    return _TIME.sub(lambda found: found[0] if _moment(found[0]) in known else NOW, text)


def fresh_keys(text: str, known: Collection[str]) -> Iterator[str]:
    """The fresh random keys in this text, as they are written there."""
    return (each for each in UUID.findall(text) if key_of(each) not in known)


def comparable(value: Any, known: Collection[str] = ()) -> Any:
    """A text without its fresh times and random keys."""
    if not isinstance(value, str):
        return value
    return UUID.sub(lambda found: found[0] if key_of(found[0]) in known else RANDOM, timeless(value, known))
