"""Compares cases of a family: python -m tests.lost_update_lab.differential "clocks and rows" 17 [--seconds 600]

SEED is a number, or FIRST:LAST. It prints each difference, and what was refused, with the programs.
"""

from __future__ import annotations

import argparse
import time

from lost_update_lab.under_test.servers import choose
from tests.lost_update_lab.differential.comparison import (
    BUDGET,
    EXECUTED,
    REFEREE,
    UNRECORDED,
    Difference,
    compared,
)
from tests.lost_update_lab.differential.families import FAMILIES
from tests.lost_update_lab.differential.writer import case

WAYS = {"referee": REFEREE, "executed": EXECUTED, "unrecorded": UNRECORDED}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("seeds", metavar="SEED", nargs="+")
    parser.add_argument("--seconds", type=float, default=600, help="of real time, in all")
    parser.add_argument(
        "--budget",
        type=float,
        default=BUDGET,
        help="seconds for the other search; this one may take three times as long",
    )
    parser.add_argument("--other", choices=WAYS, default="referee", help="the search to compare with")
    given = parser.parse_args()
    until = time.monotonic() + given.seconds
    for seed in (seed for text in given.seeds for seed in _seeds(text)):
        if time.monotonic() > until:
            print(f"time is over before seed {seed}")
            return
        made = case(given.family, seed)
        found = compared(made, choose(made.family.database), WAYS[given.other], given.budget)
        print(
            f"{given.family} {seed}: {'DIFFERS' if isinstance(found, Difference) else ''} {found}", flush=True
        )


def _seeds(text: str) -> range:
    first, _, last = text.partition(":")
    return range(int(first), int(last or int(first) + 1))


if __name__ == "__main__":
    main()
