"""The start barrier in each process of users: no user posts before the master's message, then all do at once."""

from __future__ import annotations

from typing import Any

import gevent.event


class Gate:
    """This process's view of the start: opened by the master's word, which says for how many `seconds`."""

    def __init__(self) -> None:
        self.close()

    def close(self, **_: Any) -> None:
        self.opened = gevent.event.Event()
        self.seconds = float("inf")

    def on_go(self, msg: Any, **_: Any) -> None:
        self.seconds = msg.data["seconds"] or float("inf")
        self.opened.set()
