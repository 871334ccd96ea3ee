"""The parts `strategies`, `explorer` and `lock-tables` of `manage.py bench`: their options, and what they print."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.db import ProgrammingError
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ledger.addresses import NoServers
from loadtest.bench import (
    explorer,
    explorer_table,
    growth_plot,
    lock_tables,
    output,
    strategies,
    strategies_table,
)
from loadtest.bench.children import ChildFailed
from loadtest.bench.pgbench import PgbenchFailed
from loadtest.environment import environment
from loadtest.machine import machine
from loadtest.report.console import console, show
from loadtest.servers import ServerError
from loadtest.subjects import usage

PARTS = {
    "strategies": "what a posting costs by each strategy, beside pgbench with the same SQL; imports, reconcile",
    "explorer": "schedules a second, what the reductions save, the same cases under frontrun",
    "lock-tables": "the second article's measurement: one central row against a hundred, on MariaDB and PostgreSQL",
}
WRONG = 1


def add_parsers(parts: Any) -> None:
    """Add them to the subparsers of the command."""
    for name, about in PARTS.items():
        part = parts.add_parser(name, help=about, description=about)
        part.add_argument(
            "--quick", action="store_true", help="at most 30 s, for a look; its figures are rough"
        )
        if name == "strategies":
            listed = "; ".join(f"{each}: {what}" for each, what in strategies.PARTS.items())
            part.add_argument(
                "--part", action="append", dest="only", choices=strategies.PARTS, help=f"repeatable. {listed}"
            )
        part.add_argument("--output", type=Path, default=Path("report"), help="folder of bench.json (report)")
        part.add_argument("--json", action="store_true", help="print bench.json instead of the tables")


def handle(options: dict[str, Any], out: Any) -> None:
    """Measure, write bench.json and the drawings, print to `out`. Raises CommandError, and SystemExit(1) when a
    balance does not hold what was acknowledged: a figure of a strategy that loses money is none."""
    part, folder, notes = options["part"], options["output"], output.busy()
    try:
        with Console(stderr=True).status("starting") as status:
            measured = _run(part, options, lambda text: status.update(escape(text)))
        about = machine({}) if part == "explorer" else environment()
    except (NoServers, ServerError, PgbenchFailed, ChildFailed) as error:
        raise usage(error) from error
    except ProgrammingError as error:
        raise usage(f"run `python manage.py migrate` first: {error}") from error
    measured["notes"] += notes
    whole = output.write(part, measured, about, folder / "bench.json")
    drawings = list(growth_plot.write(measured["results"], folder)) if part == "strategies" else []
    if options["json"]:
        out.write(json.dumps(whole, indent=1, ensure_ascii=False))
    else:
        show(console(out), _tables(part, measured), measured["notes"], folder / "bench.json", *drawings)
    ours = (row for row in measured["results"] if row["strategy"] != explorer.PEER)
    if not all(row.get("right", True) for row in ours):
        raise SystemExit(WRONG)


def _run(part: str, options: dict[str, Any], told: Callable[[str], None]) -> dict[str, Any]:
    quick = options["quick"]
    if part == "strategies":
        plan = strategies.QUICK if quick else strategies.Plan()
        if options["only"]:
            plan = replace(plan, parts=frozenset(options["only"]))
        return strategies.run(plan, told)
    if part == "explorer":
        return explorer.run(explorer.QUICK if quick else explorer.Plan(), told)
    return lock_tables.run(lock_tables.QUICK if quick else lock_tables.Plan(), told)


def _tables(part: str, measured: dict[str, Any]) -> Iterable[Table]:
    if part == "strategies":
        return strategies_table.tables(measured["results"], measured["goals"])
    if part == "explorer":
        return explorer_table.tables(measured["results"], measured["goals"])
    return [strategies_table.lock_tables(measured["results"])]
