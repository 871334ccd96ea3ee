"""compare: runs the swarm on each strategy, one after the other, the control first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ledger.imports.ways import SET_BASED_UNDER, Way
from ledger.models import Book
from ledger.strategies import CARD, CONTROL, find
from loadtest import workloads
from loadtest.servers.webserver import WORKERS, WebServer
from loadtest.swarm.importing_swarm import ImportingSwarm
from loadtest.swarm.run import Swarm
from loadtest.trials.availability import missing
from loadtest.trials.case import JudgedCase, TrialCase, Witness, run, skipped
from loadtest.verdict.words import Word

THINK = (0.0, 0.005)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What is compared, and under which conditions. `strategies` begins with the control."""

    strategies: tuple[str, ...]
    preset: str = ""
    workload: str = "deposits"
    workload_options: dict[str, Any] = field(default_factory=dict)
    accounts: int = 1
    store: str = "postgres"
    #: if a strategy cannot keep its accounts on `store`, use its own first store, with a control on that store too
    own_store: bool = True
    users: int = 20
    seconds: float | None = 5.0
    iterations: int = 0
    at_least: int = 2
    look: float = 0.0
    deadline: float = 30.0
    processes: int = 2
    #: of the web server, which this command starts
    server_processes: int = WORKERS
    settings: dict[str, Any] = field(default_factory=dict)

    def store_of(self, strategy: str) -> str:
        """Return the store that keeps the accounts of `strategy`."""
        stores = find(strategy).stores
        return self.store if self.store in stores or not self.own_store else stores[0]

    @property
    def set_based(self) -> bool:
        """Whether the set-based import is compared too: if all strategies of the card are."""
        imports = workloads.WORKLOADS[self.workload].imports_files
        return imports and self.store == "postgres" and set(CARD) <= set(self.strategies)

    def cases(self) -> Iterator[TrialCase]:
        """Yield a case for each strategy. Before the first case on another store, yield the control's there."""
        controlled = {self.store_of(self.strategies[0])}
        for strategy in self.strategies:
            store = self.store_of(strategy)
            if store not in controlled:
                controlled.add(store)
                yield self.case(CONTROL, store)
            yield self.case(strategy, store)
        if self.set_based:
            yield replace(self.case(SET_BASED_UNDER, self.store), way=Way.SET_BASED)

    def case(self, strategy: str, store: str | None = None) -> TrialCase:
        """Return the case of one strategy. Raises ValueError for a wrong workload or setting."""
        return TrialCase(
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
) -> Iterator[JudgedCase]:
    """Yield each strategy's result as soon as it is known. Without `host`, start and end a web server for the run.

    `keep`: folder for the clients' histories. `tick(strategy, fraction)` is called with the progress.
    """
    controls: dict[str, Word] = {}
    web: WebServer | None = None
    with ExitStack() as stack:
        for case in plan.cases():
            if lacking := missing(case.strategy, case.store):
                yield skipped(case, *lacking)
                continue
            if web is None and host is None:  # not earlier: perhaps no trial can run here
                web = stack.enter_context(WebServer(workers=plan.server_processes))
            swarm = _swarm(plan, case, web, host=host, keep=keep, tick=tick)
            result = run(case, _callers(case, swarm), controls.get(case.store))
            if result.word is not Word.NOT_RUN:
                controls.setdefault(case.store, result.word)
            yield result


def once(
    plan: Comparison,
    case: TrialCase,
    control: Word | None,
    opened: Callable[[Book], None] = lambda book: None,
) -> JudgedCase:
    """Run one case of the plan on its own web server. `control`: the verdict of the control on that store. `opened` is
    called with the book before anybody posts to it."""
    if lacking := missing(case.strategy, case.store):
        return skipped(case, *lacking)
    with WebServer(workers=plan.server_processes) as web:
        callers = _callers(case, _swarm(plan, case, web))

        def told(case: TrialCase, book: Book) -> Witness:
            opened(book)
            return callers(case, book)

        return run(case, told, control)


def _callers(case: TrialCase, swarm: Swarm) -> Swarm | ImportingSwarm:
    return ImportingSwarm(swarm=swarm) if case.workload.imports_files else swarm


def _swarm(
    plan: Comparison,
    case: TrialCase,
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
        processes=min(max(plan.processes, case.workload.processes), plan.users),
        options=plan.workload_options,
        keep=keep,
        tick=lambda fraction: tick(case.strategy, fraction),
    )
