"""`python -m museum`: every case on trial. A run of all of them writes docs/museum.md and its data anew."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lost_update_lab.under_test.scenario import Mistake
from museum import by_chance, data, lane, page, registry, replay, runner
from museum.table import table
from museum.trial import NotAsTold

OK, DISAGREES = 0, 1
#: of the table where there is no terminal
WIDTH = 150


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    if given.replay:
        return _replay(given.replay)
    slugs = [slug for slug in registry.modules() if not given.case or slug.startswith(tuple(given.case))]
    if not slugs:
        parser().error(f"no case begins with {' or '.join(given.case)}: {', '.join(registry.modules())}")
    begun = time.perf_counter()
    try:
        results = _run(slugs, given.tries)
    except NotAsTold as told:
        print(told, file=sys.stderr)
        return DISAGREES
    seconds = time.perf_counter() - begun
    if given.json:
        print(json.dumps({"results": results}, indent=1, ensure_ascii=False))
    else:
        Console(width=None if sys.stdout.isatty() else WIDTH).print(table(results))
        print(f"{len(results)} cases in {seconds:.0f} s, on {runner.LANES} cores")
    if not given.case and given.tries == by_chance.TRIES:
        page.write(data.write(results, seconds))
    return OK


def _replay(name: str) -> int:
    """→ 0: it broke again."""
    lane.begin()
    try:
        result = replay.replayed(name)
    except (LookupError, Mistake) as told:
        parser().error(str(told))
    print(result)
    return DISAGREES if result.kept else OK


def _run(slugs: Sequence[str], tries: int) -> list[dict[str, Any]]:
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("the museum", total=len(slugs))
        return runner.run(slugs, tries, lambda slug: progress.update(bar, advance=1, description=slug))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m museum", description=__doc__)
    made.add_argument(
        "--case", action="append", default=[], metavar="SLUG", help="only cases that begin so: 01"
    )
    made.add_argument(
        "--tries", type=int, default=by_chance.TRIES, help="rounds of threads behind a barrier (0: none)"
    )
    made.add_argument(
        "--replay", metavar="ID", default="", help="one order again, as docs/museum.md names it"
    )
    made.add_argument("--json", action="store_true", help="print the results as JSON")
    return made


if __name__ == "__main__":
    sys.exit(main())
