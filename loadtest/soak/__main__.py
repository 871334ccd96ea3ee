"""`make soak`: the service on servers of its own, killed at random under load, and a check of the money."""

from __future__ import annotations

import argparse
import os
import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from loadtest.commandline import program
from loadtest.commandline.arguments import typed, whole_number, writable_folder
from loadtest.commandline.durations import duration
from loadtest.servers.embedded import using
from loadtest.servers.private_lab import private_lab
from loadtest.soak.plan import SOAKED_STRATEGIES, SoakPlan
from loadtest.soak.service import Service


def main() -> int:
    options = _options()
    with private_lab("soak", keep=options.keep) as folder, using(), Service(folder / "serve") as service:
        return soak(options, folder, service)


def soak(options: argparse.Namespace, folder: Path, service: Service) -> int:
    """Run the soak. Returns the exit code: 0 if every strategy kept its book and both controls were caught."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ledger.settings")
    import django  # only now: on import, the settings read the addresses of the servers

    django.setup()
    from loadtest.soak.run import Soak
    from loadtest.soak.table import exit_code, show
    from loadtest.trials import records

    plan = _plan(options)
    told = plan.as_json()
    row = records.begin("soak", workload="deposits", store="postgres", adversary="soak", plan=told)
    course = Soak(plan, service, folder, lambda told: print(told, file=sys.stderr, flush=True))
    results = course.run()
    row.options["took_s"] = round(course.took, 1)
    row.options["strikes"] = [each.as_json() for each in course.strikes]
    report = records.finish(row, results, options.output / "soak.json")
    show(report)
    print(f"Written: {options.output / 'soak.json'}")
    return int(exit_code(results))


def _options() -> argparse.Namespace:
    usual = SoakPlan()
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--strategy", action="append", choices=SOAKED_STRATEGIES, help="repeatable")
    parser.add_argument(
        "--postings",
        type=whole_number(100_000_000),
        default=usual.postings,
        help="the least number of postings, of all clients together (%(default)s)",
    )
    parser.add_argument(
        "--strikes",
        type=whole_number(10_000, least=0),
        default=usual.strikes,
        help="the number of strikes (%(default)s); covering each hazard of each strategy takes 13",
    )
    parser.add_argument(
        "--imports",
        type=whole_number(1000, least=0),
        default=usual.imports,
        help="files to import into each book (%(default)s)",
    )
    parser.add_argument(
        "--lines", type=whole_number(100_000), default=usual.lines, help="lines of each file (%(default)s)"
    )
    parser.add_argument(
        "--drop",
        type=whole_number(1_000_000, least=0),
        default=usual.drop,
        help="a client loses one reply in this many (%(default)s)",
    )
    parser.add_argument(
        "--at-most",
        type=typed(duration),
        default=usual.at_most,
        metavar="SECONDS",
        help="start no posting after this time (no limit)",
    )
    parser.add_argument("--seed", type=int, help="seed of strikes and amounts (random; it is recorded)")
    parser.add_argument("--output", type=typed(writable_folder), default="report", metavar="DIR")
    parser.add_argument("--keep", action="store_true", help="keep logs and histories, and print where")
    return parser.parse_args()


def _plan(options: argparse.Namespace) -> SoakPlan:
    given: dict[str, Any] = {
        n: getattr(options, n) for n in ("postings", "strikes", "imports", "lines", "drop", "at_most")
    }
    seed = options.seed if options.seed is not None else random.randrange(2**31)  # noqa: S311
    return replace(SoakPlan(seed=seed, **given), strategies=tuple(options.strategy or SOAKED_STRATEGIES))


if __name__ == "__main__":
    sys.exit(program.run(main))
