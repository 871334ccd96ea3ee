"""How long a comparison will take, said in its form before it is sent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from ledger.strategies import CARD, CONTROL, known
from loadtest.background.commands import BACKGROUND_COMMANDS, FAULTS
from loadtest.background.imports import COMMAND as IMPORTS
from loadtest.background.swarms import COMMAND as SWARM
from loadtest.models import Trial
from loadtest.swarm.compare import Comparison
from loadtest.verdict.words import Word
from loadtest.workloads import WORKLOADS

#: seconds beyond the load itself: servers, warm-up, reconcile. On a free machine; measured again with each load test
OVERHEAD = 4.0
#: seconds for the import of the sample files under one strategy
IMPORTED = 3.0
#: seconds that a strategy takes in a command, on a free machine; of the faults: one hazard
TAKES = {"explore": 15.0, "faults": 6.0, "trust": 150.0}


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """`runs` of about `each` seconds. `measured`: as the last one took here. `unasked`: the control runs, unticked."""

    runs: int
    each: float
    measured: bool = False
    unasked: bool = False
    #: measurements that were asked for before and have not ended
    ahead: int = 0

    def __str__(self) -> str:
        several = "s" if self.runs > 1 else ""
        told = f"{self.runs} run{several} of about {_span(self.each)}"
        if self.runs > 1:
            told += f" each: about {_span(self.runs * self.each)} in all"
        told += ", as the last one took here." if self.measured else ", on a free machine."
        if self.unasked:
            told += f" {CONTROL} is not ticked and runs all the same: it is the control."
        if self.ahead:
            told += f" It waits for {self.ahead} other measurement{'s' if self.ahead > 1 else ''} to end."
        return told


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def of_swarm(form: Any) -> Estimate:
    """Return the estimate for what a load test's form holds now, complete or not."""
    names, workload, beyond = _chosen(form), str(form["workload"].value()), _beyond()
    seconds = _number(form["seconds"].value())
    plan = Comparison(strategies=tuple(dict.fromkeys([CONTROL, *names])))
    if workload in WORKLOADS:
        plan = replace(plan, workload=workload)
    return Estimate(
        runs=len(list(plan.cases())),
        each=seconds + (OVERHEAD if beyond is None else beyond),
        measured=beyond is not None,
        unasked=CONTROL not in names,
        ahead=_ahead(),
    )


def of_imports(form: Any) -> Estimate:
    """Return the estimate for a comparison of imports: the files are not here yet, so the last ones count."""
    names = _chosen(form)
    runs = len({CONTROL, *names}) + (set(CARD) <= {CONTROL, *names})  # and the set-based import
    last = Trial.objects.filter(command=IMPORTS, stopped=None).exclude(ended=None).first()
    judged = last.results.exclude(verdict=Word.NOT_RUN).count() if last else 0
    unasked = CONTROL not in names
    if last is None or last.ended is None or not judged:
        return Estimate(runs=runs, each=IMPORTED, unasked=unasked)
    took = (last.ended - last.started).total_seconds() / judged
    return Estimate(runs=runs, each=took, measured=True, unasked=unasked)


def of_command(form: Any, command: str) -> Estimate:
    """Return the estimate for explore, faults or trust."""
    each = TAKES[command]
    if command == FAULTS:
        each *= max(1, len(form["hazards"].value() or ()))
    return Estimate(runs=max(1, len(form["strategies"].value() or ())), each=each, ahead=_ahead())


def _number(text: Any) -> float:
    """Return the number, or 0 for one that is not written to its end."""
    try:
        return min(float(int(text)), 86_400.0)
    except (TypeError, ValueError):
        return 0.0


def _chosen(form: Any) -> tuple[str, ...]:
    names: Iterable[str] = form["strategies"].value() or CARD
    return tuple(name for name in names if name in known()) or CARD


def _ahead() -> int:
    return Trial.objects.filter(
        ended=None, command__in=(SWARM, *BACKGROUND_COMMANDS), options__has_key="done"
    ).count()


def _beyond() -> float | None:
    """Return how long a case of the last load test took beyond its load, in seconds. None: none has ended here."""
    last = Trial.objects.filter(command=SWARM, stopped=None).exclude(ended=None).first()
    if last is None or not last.options["plan"].get("seconds"):
        return None
    judged = last.results.exclude(verdict=Word.NOT_RUN).order_by("created").values_list("created", flat=True)
    if len(judged) < 2:
        return None
    took = (judged[len(judged) - 1] - judged[0]).total_seconds() / (len(judged) - 1)
    return max(0.0, took - float(last.options["plan"]["seconds"]))
