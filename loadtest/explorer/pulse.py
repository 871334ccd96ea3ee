"""A worker may hold Python's interpreter lock in a single call of C code: a regular expression, `sum` of a long range.

Then no other thread of its process runs, and none can end it. A watch in C can: it writes down where each thread is,
and ends the process.
"""

from __future__ import annotations

import faulthandler
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

#: seconds between two signs of life; and seconds without one, beyond the budget, after which the process ends
EVERY, GRACE = 1.0, 8.0
CAUSE = "the budget ended inside of one call, which lets no other thread run ({place})"
REMEDY = (
    "look at the trace: that call holds Python's interpreter lock. Let it do less, or bound what it is given"
)
_PLACE = re.compile(r'File "(?P<file>.+)", line (?P<line>\d+) in (?P<name>.+)')
_WORKERS = "worker_thread.py"


@contextmanager
def watched(budget: float | None, file: str) -> Iterator[None]:
    """In here the process ends if it shows no sign of life. `file`: where it then writes where it was."""
    if budget is None:
        yield
        return
    over, until = threading.Event(), monotonic() + budget

    def lives() -> None:
        left = max(until - monotonic(), 0.0)
        faulthandler.dump_traceback_later(left + GRACE, exit=True, file=told)

    def beat() -> None:
        while not over.wait(EVERY):
            lives()

    with open(file, "w") as told:
        lives()
        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            faulthandler.cancel_dump_traceback_later()


def last_words(file: str) -> dict[str, str]:
    """What a process that ended so has written: its error, remedy and trace. Nothing if it ended otherwise."""
    if not Path(file).exists():
        return {}
    of_workers = [part for part in Path(file).read_text().split("\n\n") if _WORKERS in part]
    for part in of_workers:
        lines = [line for line in part.splitlines() if "File " in line]
        if lines and "/lost_update_lab/" not in lines[0] and (found := _PLACE.search(lines[0])):
            place = f"{Path(found['file']).name}, line {found['line']}, in {found['name']}"
            trace = "\n".join(reversed(lines[:8]))
            return {"error": CAUSE.format(place=place), "remedy": REMEDY, "trace": trace}
    return {}
