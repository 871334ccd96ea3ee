"""What a thread may do besides sending commands, and waiting: each is noted, so that it can be done in its place."""

from __future__ import annotations

#: it looks at its monotonic clock, at its wall clock, puts a time on something, draws a random number (and which:
#: chance.py), starts a thread, wakes those who wait for something
LOOK, WALL, STAMP, DRAW, START, NOTIFY = "look", "wall", "stamp", "draw", "start", "notify"
CLOCKS = frozenset({LOOK, WALL, STAMP})
#: who waits for this sleeps: nobody else will wake it
NOBODY = object()
