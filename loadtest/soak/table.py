"""A soak's results on the terminal, and its exit code."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from rich.table import Table

from loadtest.report import console
from loadtest.soak.plan import BACKGROUND
from loadtest.verdict import claims
from loadtest.verdict.claims import Exit


def exit_code(results: Sequence[dict[str, Any]]) -> Exit:
    """Return the exit code. A control that was not caught is a disagreement too."""
    if not all(each["agrees"] for each in results if each.get("control")):
        return Exit.DISAGREES
    return claims.exit_code([each for each in results if not each.get("control")])


def recoveries(report: dict[str, Any]) -> dict[str, tuple[int, float, float, int]]:
    """Return kind of strike → (count, median seconds, longest seconds, failures) until each affected book was served
    again. A background worker affects the books whose lines it held."""
    seconds: dict[str, list[float]] = defaultdict(list)
    without: dict[str, int] = defaultdict(int)
    counts: dict[str, int] = defaultdict(int)
    for number, strike in enumerate(report["options"]["strikes"]):
        counts[strike["kind"]] += 1
        for each in report["results"]:
            if strike["kind"] == BACKGROUND and each["book"] not in strike["held"]:
                continue
            took = each["recovery_s"][number]
            if took is None:
                without[strike["kind"]] += 1
            else:
                seconds[strike["kind"]].append(took)
    return {
        kind: (counts[kind], sorted(all_of)[len(all_of) // 2], max(all_of), without[kind])
        for kind, all_of in seconds.items()
    }


def show(report: dict[str, Any]) -> None:
    table = Table(title="Soak: postings over HTTP while the service is killed")
    for name in (
        "strategy",
        "client",
        "verdict",
        "postings",
        "tries again",
        "replayed",
        "lost",
        "import lines",
    ):
        table.add_column(name)
    for each in report["results"]:
        table.add_row(
            each["strategy"],
            each["client"],
            each["verdict"],
            f"{each['postings']:,}",
            f"{each['tries_again']:,}",
            f"{each['replayed']:,}",
            f"{each['lost_amount']:,}",
            f"{each['imports']['lines']:,}",
        )
    told = [
        f"  {kind}: {count} strikes; served again after {median:.2f} s (median), {longest:.2f} s (longest)"
        + (f"; {without} books not" if without else "")
        for kind, (count, median, longest, without) in recoveries(report).items()
    ]
    told += [f"  {each['strategy']}: {each['cause']}" for each in report["results"] if not each["agrees"]]
    console.show(console.console(sys.stdout), [table], told)
