"""What a thread may do besides sending commands and waiting. Each effect is noted, so that it can be replayed."""

from __future__ import annotations

#: the thread looks at its monotonic clock, looks at its wall clock, puts a time on something, draws a random number
#: (and which one: chance.py), starts a thread, wakes the threads that wait for something; it has changed the disk (and
#: what is there since), it learns what has come of a call, it closes a connection that listens
LOOK, WALL, STAMP, DRAW, START, NOTIFY = "look", "wall", "stamp", "draw", "start", "notify"
DISK, TOLD, CLOSED = "disk", "told", "closed"
#: the thread asks what others of its worker have done (is an event set, is a thread alive?), and is told this
ASKED = "asked"
TIME_OF_DAY = frozenset({WALL, STAMP})
CLOCKS = frozenset({LOOK, *TIME_OF_DAY})
#: a thread that waits for this sleeps: no other thread will wake it
NOBODY = object()
