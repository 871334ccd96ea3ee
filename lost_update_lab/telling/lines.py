"""The user's own line in front of each command: the innermost frame that is neither the engine's nor a library's."""

from __future__ import annotations

import linecache
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from traceback import FrameSummary, extract_tb
from types import FrameType
from typing import NamedTuple

_HERE = str(Path(__file__).resolve().parent.parent)
_LIBRARIES = tuple(
    {str(Path(sysconfig.get_path(name)).resolve()) for name in ("stdlib", "platstdlib", "purelib")}
)


class SourceLine(NamedTuple):
    """`file`: as a person would write it, relative to the working directory."""

    file: str
    number: int
    source: str

    def __str__(self) -> str:
        return f"{self.file}:{self.number}"


def own_line() -> SourceLine | None:
    """The line of the user's code at which this thread is. None: it is in no code of the user's."""
    for frame in _outwards(sys._getframe(1)):
        if is_own(frame.f_code.co_filename):
            source = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
            return SourceLine(_short(frame.f_code.co_filename), frame.f_lineno, source)
    return None


def line_of(error: BaseException) -> SourceLine | None:
    """The innermost line of the user's code that the error passed."""
    return line_among(extract_tb(error.__traceback__))


def line_among(places: Sequence[FrameSummary]) -> SourceLine | None:
    """The last of these that is in the user's code."""
    for place in reversed(places):
        if is_own(place.filename) and place.lineno:
            return SourceLine(_short(place.filename), place.lineno, place.line or "")
    return None


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame:
        yield frame
        frame = frame.f_back


@lru_cache(maxsize=1 << 12)
def is_own(file: str) -> bool:
    if file.startswith("<"):
        return False
    path = str(Path(file).resolve())
    return (
        not path.startswith((_HERE + "/", *(f"{each}/" for each in _LIBRARIES)))
        and "site-packages" not in path
    )


@lru_cache(maxsize=1 << 12)
def _short(file: str) -> str:
    path = Path(file).resolve()
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
