"""When a search runs out of time: the schedules that differ from the quiet one in a single decision.

    quiet    A A A A A  B B B B B         a worker that has begun goes on; nothing goes wrong
    another  A A A †    B B …             in turn, each decision differs: B goes on, A crashes, or a reply is lost
             A A pause  B B B B B  A A

A depth-first search changes its first decisions last. So a lock that a crash right after SET leaves taken for ever
would be `inconclusive` when the time ends, though a single look finds it. There are only as many of these schedules as
there are transitions on the way. If they find nothing, they prove nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lost_update_lab.harness import Harness
from lost_update_lab.harness.play import play
from lost_update_lab.model.transitions import Transition
from lost_update_lab.runs.found import Found
from lost_update_lab.runs.run import Run
from lost_update_lab.schedule.schedule_id import exactly
from lost_update_lab.schedule.world import World

#: the share of a search's budget that is kept for this
SHARE = 0.15


def single_deviations(harness: Harness, watched: dict[bytes, int]) -> Iterator[tuple[Found, Run]]:
    """Yield each such schedule as it was executed by real code, the quiet one first. Raises Broken when the time is
    over."""
    offered: list[int] = []
    quietest = exactly(())

    def noting(run: World, transitions: Sequence[Transition]) -> int:
        if run.decisions == 1:
            offered.clear()
        choice = quietest(run, transitions)
        offered.append(
            0 if choice else len(transitions)
        )  # where a pause has to end there is nothing else to do
        return choice

    yield play(harness, watched, noting)
    for depth, transitions in enumerate(offered.copy()):
        for choice in range(1, transitions):
            yield play(harness, watched, exactly([0] * depth + [choice]))
