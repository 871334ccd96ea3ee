"""`python manage.py play [--strategy SLUG]`: explore the levels of /play, and keep every position of them."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from loadtest.explorer.lanes import Lanes
from loadtest.findings.job import Job
from loadtest.report import playable


class Command(BaseCommand):
    help = (
        "Explore the levels of the playable page on servers of their own, and write every position and every move "
        "between them to docs/data/play/."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--strategy",
            action="append",
            choices=playable.LEVELS,
            metavar="LEVEL",
            help="only this level, such as token or no-lock-3 (three workers); may be repeated",
        )

    def handle(self, *args: Any, strategy: list[str] | None, **options: Any) -> None:
        for name, graph in explored(strategy or playable.LEVELS).items():
            playable.FOLDER.mkdir(parents=True, exist_ok=True)
            told = json.dumps(graph, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
            playable.data(name).write_text(told + "\n", encoding="utf-8")
            self.stdout.write(f"{name}: {len(graph['nodes'])} positions, {graph['schedules']} schedules")


def explored(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the positions of these levels. Each level is also searched as `explore` does it. Raises CommandError when
    the two do not come to the same words: then one of them is wrong."""
    jobs = {_job(name, positions): name for name in names for positions in (True, False)}
    graphs, searches = dict[str, dict[str, Any]](), dict[str, Any]()
    with Lanes(2) as lanes:
        for job, answer in lanes.explore(list(jobs)):
            if "result" not in answer:
                raise CommandError(f"{jobs[job]}: {answer.get('error') or answer.get('elsewhere')}")
            (graphs if job.positions else searches)[jobs[job]] = answer["result"]
    for name, graph in graphs.items():
        if words_of(graph) != set(searches[name].words):
            told = f"{sorted(words_of(graph))} at the ends, {sorted(searches[name].words)} in the search"
            raise CommandError(f"{name}: {told}")
        graph["schedules"] = searches[name].figures["schedules"]
    return graphs


def _job(name: str, positions: bool) -> Job:
    level = playable.LEVELS[name]
    return Job(strategy=level.strategy, workers=level.workers, faults=level.faults, positions=positions)


def words_of(graph: Mapping[str, Any]) -> set[str]:
    return {node["end"]["word"] for node in graph["nodes"] if "end" in node}
