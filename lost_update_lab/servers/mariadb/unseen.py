"""Where a command asks for MariaDB's clock without a word of its own: in a view, a routine, or a trigger."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from lost_update_lab.servers.mariadb import clock_words

#: by the name that a command says: the text behind it
SOURCES = """
SELECT table_name, view_definition FROM information_schema.views WHERE table_schema = DATABASE()
UNION ALL SELECT routine_name, routine_definition FROM information_schema.routines WHERE routine_schema = DATABASE()
UNION ALL SELECT event_object_table, action_statement FROM information_schema.triggers
WHERE event_object_schema = DATABASE() AND trigger_name NOT LIKE 'explorer\\_%'
"""
#: functions and views, and tables with triggers
CALLED_IN_MARIADB = """
SELECT routine_name FROM information_schema.routines WHERE routine_schema = DATABASE() AND routine_type = 'FUNCTION'
UNION ALL SELECT table_name FROM information_schema.views WHERE table_schema = DATABASE()
UNION ALL SELECT event_object_table FROM information_schema.triggers
WHERE event_object_schema = DATABASE() AND trigger_name NOT LIKE 'explorer\\_%'
"""
_WORD = re.compile(r"\w+")


class HiddenOnMariadb:
    """`ask`: one round trip beside the gates."""

    def __init__(self, ask: Callable[[str], tuple[tuple[Any, ...], ...]]) -> None:
        self._ask = ask
        self._found: dict[str, tuple[str, ...]] = {}

    def clocks_in(self, text: str) -> tuple[str, ...]:
        """The texts behind what this command names that ask for the time."""
        if not self._asking:
            return ()
        if text not in self._found:
            words = {word.lower() for word in _WORD.findall(text)}
            self._found[text] = tuple(
                each for name in sorted(words & self._asking.keys()) for each in self._asking[name]
            )
        return self._found[text]

    @cached_property
    def _asking(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, text in self._ask(SOURCES):
            if clock_words.asks(str(text or "")):
                found.setdefault(str(name).lower(), []).append(str(text))
        return found
