"""All searches of one command, in lanes side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from ledger.strategies import CONTROL, find
from loadtest.explorer.lanes import Lanes
from loadtest.explorer.reach import out_of_reach
from loadtest.findings.finding import finding, in_error, not_run, verdict_on
from loadtest.findings.job import Job
from loadtest.verdict.words import STOPPED, Word


class Campaign:
    """`jobs`: one for each strategy, the control first; `lanes`: how many processes."""

    def __init__(self, jobs: Sequence[Job], lanes: int) -> None:
        if lanes < 1:
            raise ValueError(f"lanes: 1 or more, not {lanes}")
        self.jobs, self.lanes = list(jobs), lanes

    def run(self, tick: Callable[[dict[str, Any]], None] = lambda result: None) -> dict[str, Any]:
        """Explore everything. Return the contents of explore.json.

        Ctrl-C keeps the results so far; the other searches are `not-run`, and `stopped` is true.
        """
        started = datetime.now(UTC)
        lacking = {job.strategy: why for job in self.jobs if (why := out_of_reach(job))}
        found = {
            job.strategy: not_run(job, *lacking[job.strategy]) for job in self.jobs if job.strategy in lacking
        }
        environment: dict[str, Any] = {}
        stopped = False
        try:
            for result in self._explored([j for j in self.jobs if j.strategy not in lacking], environment):
                found[result["strategy"]] = result
                tick(result)
        except KeyboardInterrupt:
            stopped = True
        return {
            "command": "explore",
            "started": started.isoformat(),
            "ended": datetime.now(UTC).isoformat(),
            "stopped": stopped,
            "environment": environment,
            "options": self.jobs[0].as_json(),
            "results": [
                found.get(job.strategy) or not_run(job, STOPPED, "run it again") for job in self.jobs
            ],
        }

    def _explored(self, jobs: Sequence[Job], environment: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the results as they arrive, but none before the control's, without which nothing can be judged."""
        control: Word | None = None
        early = []
        with Lanes(min(self.lanes, max(len(jobs), 1)), _on_mariadb(jobs)) as lanes:
            for job, answer in lanes.explore(sorted(jobs, key=_long_ones_first)):
                early.append((job, answer))
                environment.update(answer["environment"])
                if job.strategy == CONTROL:
                    control = (
                        verdict_on(answer["result"], None).word if "result" in answer else Word.INCONCLUSIVE
                    )
                if control is not None:
                    yield from (_result(*each, control) for each in early)
                    early.clear()
        yield from (_result(*each, control) for each in early)

    def replays(self) -> Iterator[tuple[Job, dict[str, Any]]]:
        """Repeat the schedule of each job. Yield the answers as they arrive (explore.py, `replay`)."""
        with Lanes(min(self.lanes, max(len(self.jobs), 1)), _on_mariadb(self.jobs)) as lanes:
            for job, answer in lanes.explore(self.jobs):
                yield job, _replayed(answer)


def _on_mariadb(jobs: Sequence[Job]) -> bool:
    return any(job.where == "mariadb" for job in jobs)


def _long_ones_first(job: Job) -> int:
    """Order the jobs: the control first, then locks with renewal threads, whose searches take longest."""
    lock = getattr(find(job.strategy), "factory", None)
    return 0 if job.strategy == CONTROL else 1 if getattr(lock, "renews", False) else 2


def _result(job: Job, answer: dict[str, Any], control: Word | None) -> dict[str, Any]:
    if "result" in answer:
        return finding(answer["result"], control)
    if "elsewhere" in answer:
        return not_run(job, **answer["elsewhere"])
    return in_error(job, answer["error"], answer.get("trace", ""), answer.get("remedy", ""))


def _replayed(answer: dict[str, Any]) -> dict[str, Any]:
    if cause := answer.get("error") or answer.get("elsewhere", {}).get("reason"):
        return {"verdict": str(Word.INCONCLUSIVE), "reproduced": False, "cause": cause}
    found: dict[str, Any] = answer["result"]
    return found
