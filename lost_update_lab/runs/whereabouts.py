"""Where each thread stands, when the explorer has heard nothing for too long."""

from __future__ import annotations

import sys
import traceback
from typing import TYPE_CHECKING

from lost_update_lab.model.bounds import SECOND

if TYPE_CHECKING:
    from lost_update_lab.runs.run import Run


def whereabouts(run: Run) -> str:
    """Where each thread stands, when the explorer has heard nothing for too long."""
    frames = sys._current_frames()
    lines = []
    for task in run.tasks:
        frame = frames.get(task.thread.ident or 0) if task.thread else None
        where = traceback.extract_stack(frame)[-1] if frame else None
        place = f"{where.filename}:{where.lineno} {where.name}" if where else "?"
        lines.append(f"{task.name} {task.state.value} at {place}")
    return (
        "a worker waits in something that the explorer does not see (no gate): "
        + "; ".join(lines)
        + f". Virtual time {run.now / SECOND:g} s. Gate that client (docs/explorer.md)"
    )
