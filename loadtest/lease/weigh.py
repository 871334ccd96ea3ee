"""What a lease costs: a long one when a holder crashes, a short one when a section overruns it. Times in seconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt

Z = 1.96  # 95 %, both sides
WEIGHED_LEASES = (0.01, 0.03, 0.1, 0.3, 1.0, 5.0, 10.0, 30.0, 60.0)


@dataclass(frozen=True, slots=True)
class Weighed:
    """One lease. `overruns`, `overruns_at_most`: sections a day that outlast it, as seen, and the upper bound that so
    many measured sections allow (95 %). `standstill`: seconds a day in which nobody gets in after crashes."""

    lease: float
    share: float
    overruns: float
    overruns_at_most: float
    standstill: float


def weigh(
    sections: Sequence[float], leases: Iterable[float], *, a_day: float, crashes: float
) -> Iterator[Weighed]:
    """`sections`: how long each measured section took. `a_day`: sections a day. `crashes`: of holders, a day. A crashed
    holder's lock is free when what is left of its lease is over: at most all of it, and that is what is counted."""
    for lease in leases:
        longer = sum(each > lease for each in sections)
        most = at_most(longer, len(sections))
        yield Weighed(
            lease, longer / len(sections), a_day * longer / len(sections), a_day * most, crashes * lease
        )


def at_most(seen: int, of: int) -> float:
    """The upper end of the share's 95 % interval: Wilson's, and for none seen the rule of three."""
    if not seen:
        return min(1.0, 3 / of)
    share = seen / of
    middle = share + Z * Z / (2 * of)
    return min(1.0, (middle + Z * sqrt(share * (1 - share) / of + Z * Z / (4 * of * of))) / (1 + Z * Z / of))


def read(text: str) -> list[float]:
    """Return the seconds of a file with one section's milliseconds on each line. Raises ValueError with the line."""
    sections = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            milliseconds = float(line)
        except ValueError:
            milliseconds = -1.0
        if not 0 <= milliseconds < float("inf"):
            raise ValueError(
                f"line {number}: {line!r} is no time: give milliseconds, one section on each line"
            )
        sections.append(milliseconds / 1000)
    if not sections:
        raise ValueError("no section in it: give milliseconds, one section on each line")
    return sections
