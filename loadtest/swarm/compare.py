"""compare: the swarm on each strategy, one after the other, the control first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ledger.strategies import CONTROL, find
from loadtest import workloads
from loadtest.servers.webserver import WebServer
from loadtest.swarm.importing_swarm import ImportingSwarm
from loadtest.swarm.run import Swarm
from loadtest.trials.availability import missing
from loadtest.trials.trial import Result, Trial, run, skipped
from loadtest.verdict.words import Word

THINK = (0.0, 0.005)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What is compared, under which circumstances. `strategies` begins with the control."""

    strategies: tuple[str, ...]
    preset: str = ""
    workload: str = "deposits"
    workload_options: dict[str, Any] = field(default_factory=dict)
    accounts: int = 1
    store: str = "postgres"
    #: a strategy that cannot keep its accounts on `store` goes to the first one that it can, beside a control there
    own_store: bool = True
    users: int = 20
    seconds: float | None = 5.0
    iterations: int = 0
    at_least: int = 2
    look: float = 0.0
    deadline: float = 30.0
    processes: int = 2
    settings: dict[str, Any] = field(default_factory=dict)

    def store_of(self, strategy: str) -> str:
        """Return where the accounts of `strategy` are kept."""
        stores = find(strategy).stores
        return self.store if self.store in stores or not self.own_store else stores[0]

    def trials(self) -> Iterator[Trial]:
        """Yield a trial for each strategy; before the first one on another store, the control's there."""
        controlled = {self.store_of(self.strategies[0])}
        for strategy in self.strategies:
            store = self.store_of(strategy)
            if store not in controlled:
                controlled.add(store)
                yield self.trial(CONTROL, store)
            yield self.trial(strategy, store)

    def trial(self, strategy: str, store: str | None = None) -> Trial:
        """Return the trial of one strategy. Raises ValueError for a wrong workload or setting."""
        return Trial(
            strategy=strategy,
            workload=workloads.find(self.workload, self.accounts, **self.workload_options),
            store=store or self.store_of(strategy),
            settings={"think": list(THINK), **self.settings},
        )

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "strategies": list(self.strategies)}


def compare(
    plan: Comparison,
    *,
    host: str | None = None,
    keep: Path | None = None,
    tick: Callable[[str, float], None] = lambda strategy, fraction: None,
) -> Iterator[Result]:
    """Yield each strategy's result as it comes. Without `host` a web server of our own is started and ended.

    `keep`: folder for the clients' histories. `tick(strategy, fraction)` is told how far it is.
    """
    controls: dict[str, Word] = {}
    web: WebServer | None = None
    with ExitStack() as stack:
        for trial in plan.trials():
            if lacking := missing(trial.strategy, trial.store):
                yield skipped(trial, *lacking)
                continue
            if web is None and host is None:  # only now: perhaps nothing can be run here
                web = stack.enter_context(WebServer())
            swarm = _swarm(plan, trial, web, host=host, keep=keep, tick=tick)
            result = run(trial, _callers(trial, swarm), controls.get(trial.store))
            if result.word is not Word.NOT_RUN:
                controls.setdefault(trial.store, result.word)
            yield result


def once(plan: Comparison, trial: Trial, control: Word | None) -> Result:
    """Run one trial of the plan on a web server of its own. `control`: the verdict of the control on that store."""
    if lacking := missing(trial.strategy, trial.store):
        return skipped(trial, *lacking)
    with WebServer() as web:
        return run(trial, _callers(trial, _swarm(plan, trial, web)), control)


def _callers(trial: Trial, swarm: Swarm) -> Swarm | ImportingSwarm:
    return ImportingSwarm(swarm=swarm) if trial.workload.imports_files else swarm


def _swarm(
    plan: Comparison,
    trial: Trial,
    web: WebServer | None,
    *,
    host: str | None = None,
    keep: Path | None = None,
    tick: Callable[[str, float], None] = lambda strategy, fraction: None,
) -> Swarm:
    return Swarm(
        host=host or (web.url if web else ""),
        web=web,
        users=plan.users,
        seconds=plan.seconds,
        iterations=plan.iterations,
        at_least=plan.at_least,
        look=plan.look,
        deadline=plan.deadline,
        processes=min(max(plan.processes, trial.workload.processes), plan.users),
        options=plan.workload_options,
        keep=keep,
        tick=lambda fraction: tick(trial.strategy, fraction),
    )
