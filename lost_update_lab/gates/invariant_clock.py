"""An invariant that asks a clock. It is asked when a schedule is over, or between two steps, and by the real clock.

Rows hold the virtual times that workers were told: a lease that has ended in the schedule seems to last, or the other
way round. So where clocks are virtual, no verdict of such an invariant counts.
"""

from __future__ import annotations

from types import FrameType
from typing import ClassVar

from lost_update_lab.gates.invariant_call import is_asking
from lost_update_lab.telling.lines import is_own
from lost_update_lab.telling.narrative import shortened

REAL_TIME_ASKED = (
    "the invariant asks for the time ({}), and gets the real one, while the workers' clocks are virtual"
)
BY_TIMES_IN_ROWS = (
    "let the invariant compare times with times that the operations wrote or returned; or write down what was decided "
    "(a column with the holder), and look at that"
)
#: modules that ask for the time on behalf of others
_BETWEEN = ("lost_update_lab.gates.", "django.utils.timezone")


class InvariantClock:
    """`asked`: how invariants asked for the time in this search; `commands`: all that they sent. `virtual`: a worker
    was told a virtual time."""

    asked: ClassVar[dict[str, None]] = {}
    commands: ClassVar[dict[str, None]] = {}
    virtual: ClassVar[bool] = False

    @classmethod
    def begin(cls) -> None:
        cls.asked.clear()
        cls.commands.clear()
        cls.virtual = False

    @classmethod
    def note(cls, frame: FrameType | None) -> None:
        """The code of this frame asks a wall clock. A library's, as a log's, decides nothing."""
        if not is_asking():
            return
        while frame and str(frame.f_globals.get("__name__", "")).startswith(_BETWEEN):
            frame = frame.f_back
        if frame and is_own(frame.f_code.co_filename):
            cls.asked[f"in {frame.f_code.co_name}()"] = None

    @classmethod
    def note_command(cls, text: str, asks: bool) -> None:
        """An invariant sends it. `asks`: for the time."""
        cls.commands[text] = None
        if asks:
            cls.asked[shortened(text, 80)] = None
