"""Times that commands write down by PostgreSQL's clock (`SET updated = now()`), and that commands compare.

    A: UPDATE … SET n = 2, updated = now() WHERE updated = '12:00:00.000001'       a version

Where such a time is only written, the server's real clock may write it. Once one is compared, it decides, so the clock
has to be virtual.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property

from lost_update_lab.servers.compound import words_of
from lost_update_lab.servers.postgres.clock_words import asks
from lost_update_lab.servers.stamps import compared, writes
from lost_update_lab.snapshot.catalogue import OF_THE_USER

#: the columns that hold times
TIME_COLUMNS = (
    "SELECT DISTINCT attname FROM pg_attribute JOIN pg_class c ON c.oid = attrelid "  # noqa: S608  (names of our own)
    "JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind IN ('r', 'p') AND NOT attisdropped AND atttypid IN "
    f"('timestamptz'::regtype, 'timestamp'::regtype) AND {OF_THE_USER}"
)
_WHERE = re.compile(r"\bWHERE\b", re.IGNORECASE)


class StampedColumns:
    """What the commands of all runs so far have done to the columns that hold times. `times`: asks for their names."""

    def __init__(self, times: Callable[[], set[str]]) -> None:
        self._ask_times = times
        self._written: set[str] = set()
        self._compared: set[str] = set()
        self._known: set[str] = set()

    @cached_property
    def times(self) -> set[str]:
        return self._ask_times()

    def meet(self, text: str) -> bool:
        """Has some command written the clock's time into a column that some command compares? `text`: one more."""
        if text not in self._known:
            self._known.add(text)
            self._note(text)
        return not self._written.isdisjoint(self._compared)

    def _note(self, text: str) -> None:
        named = words_of(text) & self.times
        if not named:
            return
        before = _WHERE.split(text)[0]
        if writes(before) and asks(before):
            self._written |= words_of(before) & named
        self._compared |= compared(named, text)
