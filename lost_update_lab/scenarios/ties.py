"""Two operations have written the same time, and a command orders rows by it, or looks for it.

    A: INSERT … 12:00:01   COMMIT                   B: INSERT … 12:00:01   COMMIT
    C: SELECT … ORDER BY made DESC LIMIT 1          A's row or B's: that is open

The workers' clocks stand still between commands, where real ones hardly show one time twice. So if two operations in a
row do this, all begins again with clocks that show 1 µs more after each commit (World.distinct_times). That makes more
states, so it is done only then. What is a tie even so (a time that is cut to the second) is told in a note.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from lost_update_lab.scenarios.serial import Serial
from lost_update_lab.snapshot.catalogue import Table
from lost_update_lab.under_test.fresh import TIME

TIE = (
    "two operations, one after the other, have written the same time (one that is cut to the second?), and a command "
    "orders rows by {}, or looks for it. If that breaks it: order by a number of a sequence, too, or compare a version"
)
_WRITE = re.compile(r"\s*(INSERT|UPDATE|MERGE|REPLACE)\b", re.IGNORECASE)
_BY = r"\b(?:ORDER\s+BY|WHERE|MAX\s*\(|MIN\s*\()[^;]*\b{}\b"


def ties(orders: Sequence[Serial], tables: Collection[Table]) -> Iterator[str]:
    """Once at most. `orders`: the serial ones."""
    names = {each.name for of in tables for each in of.columns if each.type.startswith(("time", "date"))}
    for serial in orders:
        writers = defaultdict[str, set[str]](set)
        for step in serial.steps:
            if _WRITE.match(step.command):
                for time in TIME.findall(step.command):
                    writers[time].add(step.worker)
        commands = [step.command for step in serial.steps]
        by = [name for name in sorted(names) if any(_asks_by(name, each) for each in commands)]
        if by and any(len(who) > 1 for who in writers.values()):
            yield TIE.format(" and ".join(by))
            return


def _asks_by(column: str, command: str) -> bool:
    return bool(re.search(_BY.format(re.escape(column)), command, re.IGNORECASE))
