"""Restarts processes that ended by themselves, so that a killed server or worker needs no human.

    look … look … (SIGKILL) look: started again … ended at once … 0.2 s … 0.4 s … up to 5 s between two tries

It never gives up. A process that ends again and again, because its database is away, is tried every 5 s.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from lost_update_lab.embedded.base import EmbeddedServer

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0  # seconds
#: seconds that a restarted server must run to count as one that stays
STEADY = 10.0


@dataclass
class _Life:
    server: EmbeddedServer
    pause: float = 0.0
    due: float = 0.0
    born: float = field(default_factory=time.monotonic)


class Supervisor:
    """`say` gets a sentence each time: what has ended, its exit code, and that it was started again."""

    def __init__(self, say: Callable[[str], None] = print) -> None:
        self.say = say
        self._lives: list[_Life] = []

    def watch(self, servers: Iterable[EmbeddedServer]) -> None:
        """From now on restart these servers, which run already."""
        self._lives += [_Life(server) for server in servers]

    def look(self) -> list[EmbeddedServer]:
        """Restart what has ended and is due, without waiting until it answers. Return what was started."""
        return [life.server for life in self._lives if self._revived(life)]

    def _revived(self, life: _Life) -> bool:
        now = time.monotonic()
        if life.server.running or now < life.due:
            return False
        steady = now - life.born > STEADY
        life.pause = FIRST_PAUSE if steady or not life.pause else min(2 * life.pause, LONGEST_PAUSE)
        life.born, life.due = now, now + life.pause
        code = life.server.exit_code
        ended = f"{life.server.label} has ended" + (f" with code {code}" if code is not None else "")
        try:
            life.server.spawn()
        except Exception as error:  # noqa: BLE001  (the others run on, and this one is tried again)
            self.say(f"{ended}, and could not be started again: {error}")
            return False
        self.say(f"{ended}: started again (log: {life.server.log})")
        return True
