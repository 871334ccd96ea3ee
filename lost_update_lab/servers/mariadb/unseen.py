"""What is behind a command of MariaDB: the texts of views, routines and triggers. One may ask for the clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from lost_update_lab.servers.mariadb import clock_words
from lost_update_lab.servers.mariadb.way import remembers_inside
from lost_update_lab.snapshot.mariadb_behind import SOURCES, words

#: functions and views, and tables with triggers
CALLED_IN_MARIADB = """
SELECT routine_name FROM information_schema.routines WHERE routine_schema = DATABASE() AND routine_type = 'FUNCTION'
UNION ALL SELECT table_name FROM information_schema.views WHERE table_schema = DATABASE()
UNION ALL SELECT event_object_table FROM information_schema.triggers
WHERE event_object_schema = DATABASE() AND trigger_name NOT LIKE 'explorer\\_%'
"""


class HiddenOnMariadb:
    """`ask`: one round trip beside the gates."""

    def __init__(self, ask: Callable[[str], tuple[tuple[Any, ...], ...]]) -> None:
        self._ask = ask
        self._found: dict[str, tuple[str, ...]] = {}

    def clocks_in(self, text: str) -> tuple[str, ...]:
        """The texts behind what this command names that ask for the time."""
        if text not in self._found:
            self._found[text] = tuple(each for each in self.behind(text) if clock_words.asks(each))
        return self._found[text]

    def remembers(self, text: str) -> bool:
        """Does a routine, a trigger or a view behind it set, or ask for, what the session remembers?"""
        return any(map(remembers_inside, self.behind(text)))

    def behind(self, text: str) -> list[str]:
        """The texts of the views, routines and triggers that the command names."""
        names = words(text) & self._sources.keys() if self._sources else ()
        return [each for name in sorted(names) for each in self._sources[name]]

    @cached_property
    def _sources(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, text in self._ask(SOURCES):
            found.setdefault(str(name).lower(), []).append(str(text or ""))
        return found
