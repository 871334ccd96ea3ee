"""The start barrier in each process of users: no user posts before the master's message, then all start at once."""

from __future__ import annotations

from typing import Any

import gevent.event


class Gate:
    """This process's view of the start. The master's message opens it, and says for how many `seconds`."""

    def __init__(self) -> None:
        self.close()

    def close(self, **_: Any) -> None:
        self.opened = gevent.event.Event()
        self.seconds = float("inf")

    def on_go(self, msg: Any, **_: Any) -> None:
        self.seconds = msg.data["seconds"] or float("inf")
        self.opened.set()
