"""Workers whose commands return rows in no stated order: what they answer may come in any order, also alone.

    SELECT id, balance FROM account      PostgreSQL returns them as they lie: one that was updated comes last

So the order of a list in such an answer is no part of the outcome. What an operation takes from such a list (its last
row) is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from lost_update_lab.model.commands import Step
from lost_update_lab.servers.compound import ORDERED

LISTS_UNORDERED = (
    "in which order {} lists its rows is not compared: ORDER BY is missing in {}. The database may return them in any "
    "order"
)
_RETURNS_ROWS = re.compile(r"\bSELECT\b|\bRETURNING\b|\s*(?:TABLE|VALUES)\b", re.IGNORECASE)
_COLLECTS = re.compile(r"_agg\s*\(", re.IGNORECASE)
#: between two rows of a reply that is shown
_ROWS = "; "


def unordered(steps: Iterable[Step]) -> Mapping[str, str]:
    """By worker, such a command."""
    return {
        step.worker: step.command
        for step in steps
        if _RETURNS_ROWS.search(step.command)
        and not ORDERED.search(step.command)
        and (_ROWS in step.reply or _COLLECTS.search(step.command))
    }
