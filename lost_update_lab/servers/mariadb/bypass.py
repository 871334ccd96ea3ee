"""Which client talks to a MariaDB server past the gates? The server numbers its connections, and lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

#: numbers of the connections that PyMySQL has made in this process since the gates were installed, in that order. Each
#: server counts its own, so a search asks only for those that were made since it began
_numbers: list[int] = []
SESSIONS = (
    "SELECT id, query_id, user FROM information_schema.processlist "
    "WHERE user NOT IN ('system user', 'event_scheduler') AND id <> CONNECTION_ID()"
)


def made() -> list[int]:
    return _numbers


class MariadbBypassDetector:
    """`ask`: one round trip beside the gates. `next_number`: the number of the connection that is made next."""

    def __init__(
        self, ask: Callable[[str], tuple[tuple[Any, ...], ...]], next_number: Callable[[], int]
    ) -> None:
        self._ask, self._next_number = ask, next_number
        self._before: Mapping[int, int] = {}
        self._known: set[int] = set()
        self._from = self._begins = 0

    def watch(self) -> None:
        """Remember what the existing connections did last. Newer ones have higher numbers."""
        self._before = {number: last for number, last, _ in self._ask(SESSIONS)}
        self._known, self._begins = self._before.keys() & _numbers, len(_numbers)
        self._from = self._next_number()

    def bypassed(self) -> str:
        ours = self._known.union(_numbers[self._begins :])
        for number, last, user in self._ask(SESSIONS):
            if number not in ours and self._before.get(number) != last:
                return f"a client (connection {number}, user {user}) talked to MariaDB past the gates"
        numbers = range(self._from + 1, self._next_number())
        bypassing = [number for number in numbers if number not in ours]
        return f"a client (connection {bypassing[0]}) talked to MariaDB past the gates" if bypassing else ""
