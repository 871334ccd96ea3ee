"""`manage.py lease`: weigh the wait after a crash against the overruns, from section times."""

from __future__ import annotations

import dataclasses
import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand
from rich.table import Table

from ledger.addresses import NoServers
from loadtest.bench.measured import percentile
from loadtest.commandline.arguments import typed, whole_number
from loadtest.commandline.durations import length
from loadtest.commandline.subjects import usage
from loadtest.lease.sections import measure
from loadtest.lease.weigh import WEIGHED_LEASES, Weighed, read, weigh
from loadtest.report import narrow
from loadtest.report.console import console, show
from loadtest.servers import embedded
from loadtest.trials.machine import machine


class Command(BaseCommand):
    help = "How long a lease? Weigh the wait after a crash against the overruns, from measured section times."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--sections",
            type=Path,
            metavar="FILE",
            help="your own section times: milliseconds, one on each line. Without it the lab's are measured",
        )
        parser.add_argument(
            "--strategy", default="token", metavar="SLUG", help="whose sections are measured (token)"
        )
        parser.add_argument(
            "--seconds", type=typed(length), default=5.0, help="how long they are measured (5)"
        )
        parser.add_argument(
            "--callers", type=whole_number(64), default=4, help="how many want the account (4)"
        )
        parser.add_argument(
            "--lease",
            action="append",
            type=typed(length),
            metavar="SECONDS",
            help="a lease to weigh; may be repeated",
        )
        parser.add_argument(
            "--per-day",
            type=whole_number(10**12),
            default=86_400,
            help="sections a day (86400: one a second)",
        )
        parser.add_argument("--crashes", type=float, default=1.0, help="how many holders crash a day (1)")
        parser.add_argument(
            "--json", action="store_true", help="print the results as JSON instead of the table"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises CommandError."""
        if not 0 <= options["crashes"] < float("inf"):
            raise usage(f"--crashes {options['crashes']}: give 0 or more")
        sections = _sections(options)
        rows = list(
            weigh(
                sections,
                options["lease"] or WEIGHED_LEASES,
                a_day=options["per_day"],
                crashes=options["crashes"],
            )
        )
        about = {
            "strategy": None if options["sections"] else options["strategy"],
            "sections": len(sections),
            "section_ms": {
                name: round(1000 * percentile(sections, share), 3)
                for name, share in {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}.items()
            },
        }
        if options["json"]:
            results = [dataclasses.asdict(row) for row in rows]
            self.stdout.write(json.dumps({"environment": machine({}), **about, "results": results}, indent=1))
            return
        show(console(self.stdout), [_table(rows)], _told(about))


def _sections(options: dict[str, Any]) -> list[float]:
    try:
        if options["sections"]:
            return read(options["sections"].read_text())
        with embedded.held():
            return measure(options["strategy"], options["callers"], options["seconds"])
    except OSError as error:
        raise usage(f"--sections {options['sections']}: {error.strerror}") from error
    except (ValueError, LookupError, NoServers) as error:
        raise usage(error) from error


def _table(rows: list[Weighed]) -> Table:
    table = narrow.blank(1)
    for number, head in enumerate(("lease, s", "overruns a day", "at most", "standstill a day, s")):
        table.add_column(head, justify="right" if number else "left")
    for row in rows:
        table.add_row(
            f"{row.lease:g}", f"{row.overruns:,.1f}", f"{row.overruns_at_most:,.1f}", f"{row.standstill:,.1f}"
        )
    return table


def _told(about: dict[str, Any]) -> list[str]:
    times = ", ".join(f"{name} {value:g}" for name, value in about["section_ms"].items())
    return [
        f"{about['sections']:,} sections, ms: {times}",
        "An overrun lets two write at once. A standstill: a holder crashed, and its lease is not over.",
        f"No overrun seen in {about['sections']:,} sections means at most {3 / about['sections']:.2g} of them (95 %).",
    ]
