"""The parts of `manage.py bench`: what each is about, its options, and how it is measured, judged and drawn."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.table import Table

from loadtest.bench import explorer, lock_tables, locks, scale, strategies, waiting
from loadtest.bench.explorer import goals as explorer_goals
from loadtest.bench.explorer import table as explorer_table
from loadtest.bench.locks import goals as locks_goals
from loadtest.bench.locks import table as locks_table
from loadtest.bench.measured import Measured, Row
from loadtest.bench.scale import table as scale_table
from loadtest.bench.strategies import goals as strategies_goals
from loadtest.bench.strategies import table as strategies_table
from loadtest.bench.tables import judged
from loadtest.commandline.arguments import whole_number
from loadtest.commandline.subjects import wanted
from loadtest.report import growth

Told = Callable[[str], None]


@dataclass(frozen=True)
class Part:
    """`quick`: what `--quick` does, in words. `plans`: the full and the quick plan. `choices`: the values of
    `--part`. `yours`: the options that add a contender. `rounds`: is there a `--rounds`? `run` measures a plan and
    fills the given `Measured`; its rows go to `judge` for the goals, and to `tables`. `drawn` writes drawings to a
    folder."""

    about: str
    quick: str
    plans: tuple[Any, Any]
    run: Callable[[Any, Measured, Told], None]
    tables: Callable[[Sequence[Row]], Iterable[Table]]
    judge: Callable[[Sequence[Row]], Iterable[Row]] = lambda _: ()
    choices: Mapping[str, str] = field(default_factory=dict)
    yours: tuple[str, ...] = ()
    rounds: bool = False
    drawn: Callable[[Sequence[Row], Path], Iterator[Path]] = lambda *_: iter(())

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--quick", action="store_true", help=f"{self.quick}; its figures are rough")
        if self.choices:
            listed = "; ".join(f"{each}: {what}" for each, what in self.choices.items())
            parser.add_argument(
                "--part", action="append", dest="only", choices=self.choices, help=f"repeatable. {listed}"
            )
        if self.rounds:
            parser.add_argument(
                "--rounds", type=whole_number(1000), help=f"how many rounds ({self.plans[0].rounds})"
            )
        for name in self.yours:
            parser.add_argument(
                f"--{name}",
                action="append",
                metavar="SLUG" if name == "strategy" else "MODULE:CALLABLE",
                help=f"{YOURS[name]}, measured beside the others; may be repeated",
            )

    def plan(self, options: Mapping[str, Any]) -> Any:
        """Return the plan for these options. Raises CommandError."""
        plan = self.plans[options["quick"]]
        if options.get("only"):
            plan = replace(plan, parts=frozenset(options["only"]))
        if (rounds := options.get("rounds")) is not None:
            plan = replace(plan, rounds=rounds)
        if self.yours:
            given = {name: options.get(name) or [] for name in ("strategy", "lock")}
            plan = replace(plan, yours=wanted(given))
        return plan

    def all_tables(self, found: Measured, goals: Sequence[Row]) -> Iterator[Table]:
        """Yield the tables of the results, then the goals if there are any, with the warning below."""
        yield from self.tables(found.results)
        if goals:
            yield judged(goals, found.warning)


YOURS = {"strategy": "a strategy", "lock": "your own lock"}

PARTS = {
    "locks": Part(
        about="what a lock costs, alone and contended, beside its peers and the physical limit",
        quick="a short look: at most 60 s",
        plans=(locks.LocksPlan(), locks.QUICK),
        run=locks.run,
        tables=locks_table.tables,
        judge=locks_goals.judge,
        choices=locks.PARTS,
        yours=("lock",),
        rounds=True,
    ),
    "strategies": Part(
        about="what a posting costs under each strategy, beside pgbench with the same SQL; imports, reconcile",
        quick="a short look: about 30 s",
        plans=(strategies.StrategiesPlan(), strategies.QUICK),
        run=strategies.run,
        tables=strategies_table.tables,
        judge=strategies_goals.judge,
        choices=strategies.PARTS,
        yours=("strategy", "lock"),
        drawn=growth.write,
    ),
    "explorer": Part(
        about="the explorer's schedules per second, what its reductions save, and the same cases under frontrun",
        quick="less time for frontrun and for the ledger's strategy (5 s); no search of a case is cut short",
        plans=(explorer.ExplorerPlan(), explorer.QUICK),
        run=explorer.run,
        tables=explorer_table.tables,
        judge=explorer_goals.judge,
    ),
    "lock-tables": Part(
        about="the measurement of E11 and E13: one central row against a hundred, on MariaDB and PostgreSQL",
        quick="a short look: one short round",
        plans=(lock_tables.LockTablesPlan(), lock_tables.QUICK),
        run=lock_tables.run,
        tables=lambda rows: [strategies_table.lock_tables(rows)],
    ),
    "waiting": Part(
        about="A19: what polling and publish/subscribe cost the server, 2 to 64 waiters, and the hand-over",
        quick="a short look: 2 and 8 waiters",
        plans=(waiting.WaitingPlan(), waiting.QUICK),
        run=waiting.run,
        tables=waiting.tables,
    ),
    "scale": Part(
        about="what 1, 2, 4 and 8 processes bring: of the web server, of the import workers, of Locust",
        quick="a short look: 1 and 2 processes, once",
        plans=(scale.ScalePlan(), scale.QUICK),
        run=scale.run,
        tables=scale_table.tables,
        choices=scale.CURVES,
        rounds=True,
        drawn=growth.write,
    ),
}
