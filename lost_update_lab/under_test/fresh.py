"""Times of day and random keys: those of the opening state and of the arguments are constants, all others are fresh.

What is fresh is another one in each run, and its value means nothing. A constant does mean something: two bookings of
one slot are not two bookings of two slots. What is computed from constants alone is one, too: a subscription's end that
is moved by 30 days, the digest of a text. No form tells that. So the serial orders are run once more with clocks that
run ahead and with other random numbers (serial.py): what is the same again is a constant.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from lost_update_lab.model.epoch import Epoch

NOW, RANDOM = "‹now›", "‹random›"
UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
#: stands for a number that a sequence gave out: which sequence, which number (drawn.py)
NUMBERED = "‹{}:{}›"
MARK = re.compile(r"‹\d+:\d+›")
#: a random key, or such a number
KEY = re.compile(f"{UUID.pattern}|{MARK.pattern}", re.IGNORECASE)
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^\s\"'\\,;)\]}]*")
#: a number that may be a Unix time, in seconds down to nanoseconds
_NUMBER = re.compile(r"(?<![\d.])\d{10,19}(?:\.\d+)?(?![\d.])")
#: how many of it make a second
_UNITS = (1, 10**3, 10**6, 10**9)
#: of a time of day, or of a Unix time in seconds
_MICROSECONDS = re.compile(r"(?<=:\d\d)\.000\d{1,3}(?!\d)|(?<=\d{10})\.0(?:00\d{1,3})?(?!\d)")
#: in seconds: as far as a schedule's clocks may come
_FAR = 86400.0


def constants(texts: Iterable[str]) -> frozenset[str]:
    """The times and random keys in these texts, each in one form."""
    found = set[str]()
    for text in texts:
        found |= {key_of(each) for each in UUID.findall(text)}
        found |= {_moment(each) for each in TIME.findall(text)}
        found |= {each for each in _NUMBER.findall(text) if shows_clock(float(each))}
    return frozenset(found)


def shows_clock(number: float) -> bool:
    """Is this a moment of the schedule as a Unix time, in seconds, ms, µs or ns?"""
    return _unit_of(number) is not None


def _unit_of(number: float) -> int | None:
    return next((unit for unit in _UNITS if abs(number / unit - Epoch.shows) < _FAR), None)


def is_now(time: str, passed: int) -> bool:
    """Is it a time that a clock has shown in a schedule of so many µs?"""
    try:
        moment = datetime.fromisoformat(time)
    except ValueError:
        return False
    return _was_shown((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp(), passed)


def unix_times(text: str, passed: int) -> Iterator[str]:
    """The numbers in this text that are such a time, in µs: others may write it in another unit, or to more digits."""
    return (
        str(round(float(each) / unit * 1e6))
        for each in _NUMBER.findall(text)
        if (unit := _unit_of(float(each))) and _was_shown(float(each) / unit, passed)
    )


def _was_shown(seconds: float, passed: int) -> bool:
    return 0 <= seconds - Epoch.shows <= passed / 1e6 + 0.001


def to_the_ms(value: Any) -> Any:
    """A text or a number without the µs of its times: they only tell looks apart (World.distinct_times)."""
    if isinstance(value, str):
        return _MICROSECONDS.sub("", value)
    unit = _unit_of(value)
    return round(value * 1000 / unit) if unit else value


def is_fresh(number: float, known: Collection[str]) -> bool:
    """Is it a Unix time that the run itself has made?"""
    return shows_clock(number) and str(number) not in known


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
    return TIME.sub(lambda found: found[0] if _moment(found[0]) in known else NOW, text)


def without_clock(text: str, known: Collection[str]) -> str:
    """The text without its fresh times, Unix times too."""

    def told(found: re.Match[str]) -> str:
        return NOW if found[0] not in known and shows_clock(float(found[0])) else found[0]

    return _NUMBER.sub(told, timeless(text, known))


def fresh_keys(text: str, known: Collection[str]) -> Iterator[str]:
    """The fresh random keys in this text, and the numbers that were drawn, as they are written there."""
    return (each for each in KEY.findall(text) if key_of(each) not in known)


def comparable(value: Any, known: Collection[str] = ()) -> Any:
    """A text without its fresh times and random keys."""
    if not isinstance(value, str):
        return value
    return UUID.sub(lambda found: found[0] if key_of(found[0]) in known else RANDOM, timeless(value, known))
