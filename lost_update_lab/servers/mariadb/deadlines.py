"""The times in MariaDB's rows that may be yet to come: of DATETIME and TIMESTAMP, and numbers of seconds or ms."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from lost_update_lab.model.bounds import MS, SECOND
from lost_update_lab.model.epoch import Epoch
from lost_update_lab.servers.deadlines import Ends

#: of the numbers that may be such times: UNIX_TIMESTAMP() + 10, in seconds or ms
_YEAR = 365 * 86_400 * SECOND


def ends(
    rows: Mapping[str, Collection[tuple[Any, ...]]],
    names: Mapping[str, Collection[str]],
    zone: int,
    digits: Collection[int],
) -> Ends:
    """`names`: the columns of each table. `zone`: how many seconds the server's time zone is ahead of UTC: a DATETIME
    has none, and may be meant either way. `digits`: of the clock that commands ask for (clock_words.digits). A time is
    over just after it, and once more when that clock shows a later one: `<` and `<=` agree then."""
    found = {
        (f"{table}[{str(row[0])[:40]}].{column}", at)
        for table, of_table in rows.items()
        for row in of_table
        for column, value in zip(names[table], row, strict=True)
        for time in _times(value, zone)
        for at in {time + 1, *(_shown_later(time, each) for each in digits)}
    }
    return tuple(sorted(found))


def _times(value: Any, zone: int) -> Iterator[int]:
    """In µs since the start of the schedule."""
    began = round(Epoch.shows) * SECOND
    if isinstance(value, datetime):
        shown = round(value.replace(tzinfo=UTC).timestamp() * SECOND) - began
        yield from {shown, shown - zone * SECOND}
    elif isinstance(value, int):
        yield from (at for unit in (SECOND, MS) if 0 <= (at := value * unit - began) < _YEAR)


def _shown_later(time: int, digits: int) -> int:
    """When a clock with that many digits first shows a later time."""
    step: int = SECOND // 10**digits
    return (time // step + 1) * step
