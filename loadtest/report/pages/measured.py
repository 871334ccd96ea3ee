"""The measured data behind the pages (docs/data/*.json). A new run replaces what it measured again and keeps the rest.

    {commit: {"cores": 2, "measured": {"token pause": "lost", …}}, …}

Each key occurs once: in the run that counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ledger.addresses import BASE_DIR
from lost_update_lab.telling.markdown import in_short_lines

FOLDER = BASE_DIR / "docs" / "data"
NOT_MEASURED = "not measured"

#: commit → the machine's cores, and the data measured there
Runs = dict[str, dict[str, Any]]


def load(path: Path) -> Runs:
    """Return the data of earlier runs, or {} if there is no file."""
    runs: Runs = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return runs


def save(path: Path, runs: Runs) -> None:
    path.parent.mkdir(exist_ok=True)
    text = json.dumps(runs, indent=1, sort_keys=True, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def merged(runs: Runs, environment: Mapping[str, Any], found: Mapping[str, Any]) -> Runs:
    """Return `runs` with the findings of a run on `environment`. They replace earlier findings."""
    commit = str(environment["commit"])[:12]
    rest = {
        name: {**run, "measured": {key: each for key, each in run["measured"].items() if key not in found}}
        for name, run in runs.items()
    }
    here = rest.get(commit, {"measured": {}})["measured"]
    rest[commit] = {"cores": environment["cores"], "measured": {**here, **found}}
    return {name: run for name, run in rest.items() if run["measured"]}


def everything(runs: Runs) -> dict[str, Any]:
    """Return all data, by key."""
    return {key: each for run in runs.values() for key, each in run["measured"].items()}


def kept_only(runs: Runs, known: Mapping[str, Any]) -> Runs:
    """Return `runs` without the keys that `known` no longer has."""
    left = {
        name: {**run, "measured": {key: each for key, each in run["measured"].items() if key in known}}
        for name, run in runs.items()
    }
    return {name: run for name, run in left.items() if run["measured"]}


def provenance(runs: Runs, what: str) -> str:
    """Say how much was measured where: "cells: 15 on 2 cores (12 at commit 317e78cc7438, 3 at 5906b7817dbd)"."""
    by_cores: dict[int, list[tuple[int, str]]] = {}
    for commit, run in runs.items():
        by_cores.setdefault(run["cores"], []).append((len(run["measured"]), commit))
    told = []
    for cores, found in sorted(by_cores.items()):
        most = sorted(found, key=lambda each: (-each[0], each[1]))
        commits = ", ".join(f"{number} at {commit}" for number, commit in most)
        commits = commits.replace(" at ", " at commit ", 1)
        told.append(f"{sum(number for number, _ in found)} on {cores} cores ({commits})")
    return f"{what}: {'; '.join(told)}" if told else NOT_MEASURED


def placed(page: str, begin: str, end: str, made: str) -> str:
    """Return `page` with `made`, in short lines, between its two marks."""
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{in_short_lines(made)}{end}{after}"
