"""How a worker ended, and when two ended in the same way."""

from __future__ import annotations

from collections.abc import Hashable

from lost_update_lab.model.subject import Ending
from lost_update_lab.model.workers import State, Worker


def ending_of(worker: Worker) -> Ending:
    main = worker.main
    return Ending(
        worker.name,
        worker.result,
        worker.error,
        crashed=main.state is State.DEAD,
        alone=worker.alone,
        struck=worker.struck,
        waiting=main.state not in (State.DONE, State.DEAD),
    )


def told_of(ending: Ending) -> Hashable:
    """All of an ending that a judge may look at (Subject.judge)."""
    result, error = ending.result, ending.error
    cause = error.__cause__ if error else None
    return (
        ending.worker,
        result if isinstance(result, str | int | float | None) else type(result),
        (type(error), str(error), type(cause), str(cause)),
        (ending.crashed, ending.alone, ending.struck, ending.waiting),
    )
