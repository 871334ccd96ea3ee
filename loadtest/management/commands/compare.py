"""`manage.py compare`: a Locust swarm for each strategy, over HTTP, and the table."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError, ProgrammingError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ledger.addresses import NoServers
from ledger.stores import STORES
from ledger.strategies import CARD, STRATEGIES, Settings, find
from loadtest.commandline import subjects
from loadtest.commandline.arguments import named_value, typed, whole_number
from loadtest.commandline.durations import duration, length, span
from loadtest.commandline.program import end_as_ctrl_c
from loadtest.models import Trial
from loadtest.report.console import console, show, tell
from loadtest.report.files import keep, measured
from loadtest.report.labels import labels
from loadtest.report.terminal import further, matrix, remarks, stopped, table
from loadtest.servers import ServerError, embedded
from loadtest.servers.webserver import MOST_WORKERS, THREADS, WORKERS
from loadtest.swarm.bank import BankError
from loadtest.swarm.compare import Comparison, compare
from loadtest.swarm.presets import PRESETS
from loadtest.trials import records
from loadtest.trials.case import skipped
from loadtest.trials.rehearsal import NotTaken, rehearse
from loadtest.verdict.claims import exit_code
from loadtest.verdict.words import STOPPED
from loadtest.workloads import WORKLOADS
from loadtest.workloads.base import MOST_ACCOUNTS

MOST_USERS = 1000
MORE_USERS = (
    f"the web server handles {WORKERS * THREADS} requests at once, and further callers only queue. For more "
    "contention, give a longer --think; for more load, run Locust on machines of its own"
)
#: the value of --workload for all workloads
EVERY = "all"
#: numbers of processes → help text
PROCESSES = {
    "processes": f"processes of Locust ({Comparison.processes}); a workload may need more",
    "server-processes": f"processes of the web server that is started for the run ({WORKERS})",
}
#: time settings of a strategy → (parser, help text)
TIMES = {
    "think": (
        span,
        "how long the business logic takes between read and write, such as 20ms or 1-100ms (0-5ms)",
    ),
    "before": (span, "work before the read, such as 1-100ms (none)"),
    "poll": (duration, "how often a waiting lock tries again, such as 20ms (as published)"),
    "lease": (duration, "a lock's lease, such as 5s (as published)"),
}


def _add_sizes(parser: ArgumentParser) -> None:
    """How many, how long, how often."""
    parser.add_argument(
        "--users", type=whole_number(MOST_USERS, why=MORE_USERS), help="how many callers at once (20)"
    )
    parser.add_argument("--seconds", type=typed(length), help="how long for each strategy (5)")
    parser.add_argument(
        "--accounts",
        type=whole_number(MOST_ACCOUNTS),
        help="how many accounts (1: all callers meet on one hot account)",
    )
    for name, (parse, about) in TIMES.items():
        parser.add_argument(f"--{name}", type=typed(parse), metavar="TIME", help=about)
    for name, about in PROCESSES.items():
        parser.add_argument(f"--{name}", type=whole_number(MOST_WORKERS), metavar="N", help=about)


class Command(BaseCommand):
    help = "Run a load test against each strategy and compare what is left of the money."
    requires_system_checks: list[str] = []
    kept = "No results are written."
    files: list[str]

    def add_arguments(self, parser: ArgumentParser) -> None:
        subjects.add_arguments(parser)
        parser.add_argument(
            "--preset",
            choices=PRESETS,
            help="; ".join(f"{name}: {about}" for name, (about, _) in PRESETS.items()),
        )
        parser.add_argument(
            "--all", action="store_true", help="every strategy, instead of the six of `make demo`"
        )
        parser.add_argument(
            "--workload",
            action="append",
            default=[],
            choices=(*WORKLOADS, EVERY),
            help="what the users do (deposits); may be repeated; all: all of them in turn",
        )
        parser.add_argument(
            "--option",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="an option of the workload, such as reads=0.95; may be repeated (docs/reference.md lists them)",
        )
        parser.add_argument(
            "--unordered",
            action="store_true",
            help="take a posting's locks in the order of its lines, not in one common order: transfers deadlock",
        )
        parser.add_argument("--store", choices=STORES, help="where the balances live (postgres, if they can)")
        _add_sizes(parser)
        parser.add_argument(
            "--host", metavar="URL", help="use this running web server, on the same databases"
        )
        parser.add_argument("--history", type=Path, metavar="DIR", help="keep the clients' journals in DIR")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            plans = _plans(options)
            for plan in plans:
                for case in plan.cases():
                    find(case.strategy).check(Settings.of(plan.settings))
        except ValueError as error:
            raise subjects.usage(error) from error
        subjects.writable(options["output"])
        if options["history"]:
            subjects.writable(options["history"], "--history")
        end_as_ctrl_c()
        try:
            with embedded.held():
                report = self.measure(plans, options)
        except (NoServers, ServerError, BankError, NotTaken) as error:
            raise subjects.usage(f"{error}\n{self.kept}") from error
        except (InterfaceError, OperationalError) as error:
            raise subjects.usage(f"the database does not answer: {error}\n{self.kept}") from error
        except (RedisConnectionError, RedisTimeoutError) as error:
            raise subjects.usage(f"Valkey (or Redis) does not answer: {error}\n{self.kept}") from error
        except ProgrammingError as error:
            raise subjects.usage(f"run `python manage.py migrate` first: {error}") from error
        except KeyboardInterrupt:
            raise CommandError(f"stopped. {self.kept}", returncode=130) from None
        self.show(report, options)
        if code := exit_code(report["results"]):
            raise SystemExit(int(code))

    def measure(self, plans: list[Comparison], options: dict[str, Any]) -> dict[str, Any]:
        """Run all trials, with a progress bar on the terminal. An aborted run keeps its results so far."""
        file, report = options["output"] / "compare.json", {}
        left = [case for plan in plans for case in plan.cases()]
        for warning in dict.fromkeys(map(rehearse, left)):
            if warning:
                self.stderr.write(warning)
        columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
        with Progress(*columns, console=Console(stderr=True, emoji=False), transient=True) as progress:
            bar = progress.add_task("starting the web server", total=len(left))
            results: list[dict[str, Any]] = []
            rows, workloads = list[Trial](), [plan.workload for plan in plans]

            def tick(strategy: str, fraction: float) -> None:
                progress.update(bar, description=escape(strategy), completed=len(results) + fraction)

            for plan in plans:
                about: dict[str, Any] = {"plan": plan.as_json(), "workloads": workloads}
                row = records.begin("compare", workload=plan.workload, store=plan.store, **about)
                rows.append(row)
                try:
                    for result in compare(plan, host=options["host"], keep=options["history"], tick=tick):
                        results.append(records.record(row, result))
                        left.pop(0)
                        told = f"  {escape(labels(results)[-1])}: {result.word}"
                        progress.console.print(told, highlight=False)
                finally:
                    rest = [skipped(case, STOPPED).as_json() for case in left]
                    report = records.report_of(rows[0], results + rest, stopped=bool(rest))
                    self.files = keep(report, file)
                    if measured(report):
                        self.kept = "\n".join(["What was measured is kept.", *self.files])
                    if results:
                        records.close(row)  # the database may be the reason for the abort
        return report

    def show(self, report: dict[str, Any], options: dict[str, Any]) -> None:
        if options["json"]:
            tell(self, report, self.files)
            return
        on = console(self.stdout)
        results = report["results"]
        several = len({each["workload"] for each in results}) > 1
        drawn = matrix(results) if several else table(results, on.width)
        show(on, [drawn], [*remarks(results), *stopped(results), *self.files, *further(results)])


def _plans(options: dict[str, Any]) -> list[Comparison]:
    """Return a plan for each workload. Raises ValueError and CommandError."""
    given = options["workload"]
    given = [given] if isinstance(given, str) else given  # call_command(…, workload="stock")
    of_preset = PRESETS[options["preset"]][1].get("workload") if options["preset"] else None
    if of_preset and (others := [name for name in given if name != of_preset]):
        raise ValueError(
            f"--preset {options['preset']} is an experiment with {of_preset}: leave out --workload {others[0]}, or "
            "give --users, --seconds, --think … of your own instead of the preset"
        )
    workloads = tuple(WORKLOADS) if EVERY in given else tuple(dict.fromkeys(given))
    return [_plan({**options, "workload": workload}) for workload in workloads or (None,)]


def _plan(options: dict[str, Any]) -> Comparison:
    """Return the plan of the preset and the other options. Raises ValueError and CommandError."""
    chosen = dict(PRESETS[options["preset"]][1]) if options["preset"] else {}
    settings = dict(chosen.pop("settings", {}))
    for name in TIMES:
        if options[name] is not None:
            settings[name] = options[name]
    if options["unordered"]:
        settings["ordered"] = False
    if options["option"]:
        chosen["workload_options"] = {
            **chosen.get("workload_options", {}),
            **dict(map(named_value, options["option"])),
        }
    for name in ("workload", "store", "users", "seconds", "accounts", "processes", "server_processes"):
        if options[name] is not None:
            chosen[name] = options[name]
    if options["server_processes"] and options["host"]:
        raise ValueError(
            "--server-processes is for the web server of this run: leave it out, or leave out --host"
        )
    poll, seconds = settings.get("poll"), chosen.get("seconds", Comparison.seconds)
    if poll and seconds and poll >= seconds:
        raise ValueError(
            f"--poll is {poll:g} s, but the run is over after {seconds:g} s (--seconds): a waiting lock "
            f"would try once. For milliseconds write --poll {poll:g}ms"
        )
    everyone = tuple(STRATEGIES) if options["all"] else ()
    return Comparison(
        own_store=options["store"] is None,
        strategies=subjects.subjects({**options, "strategy": [*everyone, *options["strategy"]]}, CARD),
        preset=options["preset"] or "",
        settings=settings,
        **chosen,
    )
