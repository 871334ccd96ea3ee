"""Which client talks to a MariaDB server past the gates? The server numbers its connections, and lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

#: numbers of the connections that PyMySQL has made in this process since the gates were installed
_made: set[int] = set()
SESSIONS = (
    "SELECT id, query_id, user FROM information_schema.processlist "
    "WHERE user NOT IN ('system user', 'event_scheduler') AND id <> CONNECTION_ID()"
)


def made() -> set[int]:
    return _made


class MariadbBypassDetector:
    """`ask`: one round trip beside the gates. `next_number`: the number of the connection that is made next."""

    def __init__(
        self, ask: Callable[[str], tuple[tuple[Any, ...], ...]], next_number: Callable[[], int]
    ) -> None:
        self._ask, self._next_number = ask, next_number
        self._before: Mapping[int, int] = {}
        self._from = 0

    def watch(self) -> None:
        """Remember what the existing connections did last. Newer ones have higher numbers."""
        self._before = {number: last for number, last, _ in self._ask(SESSIONS)}
        self._from = self._next_number()

    def bypassed(self) -> str:
        for number, last, user in self._ask(SESSIONS):
            if number not in _made and self._before.get(number) != last:
                return f"a client (connection {number}, user {user}) talked to MariaDB past the gates"
        numbers = range(self._from + 1, self._next_number())
        bypassing = [number for number in numbers if number not in _made]
        return f"a client (connection {bypassing[0]}) talked to MariaDB past the gates" if bypassing else ""
