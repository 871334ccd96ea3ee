"""The command line that repeats a run, from the options in its file or in its row in the admin.

{"strategies": ["no-lock", "mylocks:mine"], "users": 16} → python manage.py compare --lock mylocks:mine --users 16
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

from ledger.strategies import CARD, CONTROL, STRATEGIES
from loadtest.swarm.compare import Comparison
from loadtest.swarm.presets import PRESETS
from loadtest.workloads import WORKLOADS

#: options of `explore` → their defaults
EXPLORE = {"workers": 2, "faults": 1, "work": 0, "slack": 100, "workload": "deposits", "budget": 300.0}


#: options of `trust` → their defaults
TRUST = {"seconds": 5.0, "budget": 60.0}


def of_report(report: Mapping[str, Any], name: str) -> str:
    """Return the line for an evidence file of the command `name`. A file without recorded options gets a line without
    options."""
    options = report.get("options", {})
    if name == "compare" and "plan" in options:
        return of_plan(options["plan"], options.get("workloads", ()))
    if name == "faults" and "plan" in options:
        return _line(name, _faults(options["plan"]))
    if name == "trust" and options:
        return _line(name, _trust(options))
    if name == "explore" and options:
        strategies = [each["strategy"] for each in report.get("results", ())]
        given = ((each, options.get(each, usual), usual) for each, usual in EXPLORE.items())
        return _line(name, [*_strategies(strategies, STRATEGIES), *_changed(given)])
    return _line(name, [])


def of_plan(plan: Mapping[str, Any], workloads: Sequence[str] = ()) -> str:
    """Return the line for a comparison by a swarm. `workloads`: the workloads, if there were several."""
    preset = PRESETS[plan["preset"]][1] if plan["preset"] else {}
    usual = {**_defaults(), **preset}
    words = ["--preset", plan["preset"]] if preset else []
    everyone = set(plan["strategies"]) == set(STRATEGIES)
    words += ["--all"] if everyone else _strategies(plan["strategies"], CARD)
    words += _workloads(workloads or [plan["workload"]], usual["workload"])
    words += _changed((each, plan[each], usual[each]) for each in ("accounts", "users", "seconds"))
    for each in ("processes", "server_processes"):  # files of older versions have no server_processes
        words += _changed([(each.replace("_", "-"), plan.get(each, usual[each]), usual[each])])
    if not plan["own_store"] and plan["store"] != preset.get("store"):
        words += ["--store", plan["store"]]
    for name, value in plan["workload_options"].items():
        if value != usual.get("workload_options", {}).get(name):
            words += ["--option", f"{name}={json.dumps(value)}"]
    return _line("compare", [*words, *_settings(plan["settings"], preset.get("settings", {}))])


def _workloads(asked: Sequence[str], usual: str) -> Iterator[str]:
    if list(asked) == [usual]:
        return
    for slug in ["all"] if set(asked) == set(WORKLOADS) else asked:
        yield from ("--workload", slug)


def _defaults() -> dict[str, Any]:
    return {each.name: each.default for each in fields(Comparison) if each.default is not MISSING}


def _settings(chosen: Mapping[str, Any], usual: Mapping[str, Any]) -> Iterator[str]:
    for name, value in chosen.items():
        if value == usual.get(name):
            continue
        if name in ("think", "before"):
            low, high = (each * 1000 for each in value)
            yield from (f"--{name}", f"{low:g}-{high:g}ms")
        elif name in ("poll", "lease"):
            yield from (f"--{name}", f"{value * 1000:g}ms")
        elif name == "ordered" and not value:
            yield "--unordered"


def _faults(plan: Mapping[str, Any]) -> Iterator[str]:
    from loadtest.faults.hazards import (
        ADVERSARIES,  # imports every hazard: only a line of `faults` needs them
    )

    if tuple(plan["strategies"]) == CARD:
        yield "--quick"
    else:
        yield from _strategies(plan["strategies"], STRATEGIES)
    if set(plan["hazards"]) != set(ADVERSARIES):
        for hazard in plan["hazards"]:
            yield from ("--hazard", hazard)
    yield from _changed([("repeat", plan["repeat"], 1)])
    if "seed" in plan:  # the admin's runs have one for each strategy
        yield from ("--seed", str(plan["seed"]))


def _trust(options: Mapping[str, Any]) -> Iterator[str]:
    yield from _strategies(options["strategies"], ())
    yield from _changed((name, options[name], usual) for name, usual in TRUST.items())
    for name in ("gate", "hazard"):
        for value in options[name]:
            yield from (f"--{name}", value)


def _strategies(asked: Iterable[str], usual: Iterable[str]) -> Iterator[str]:
    """Yield the options for the strategies `asked`. The control runs anyway, and `usual` are the defaults."""
    named = list(dict.fromkeys(asked))
    if set(named) == set(usual):
        return
    for slug in [each for each in named if each != CONTROL] or named:
        yield from ("--lock" if ":" in slug else "--strategy", slug)


def _changed(options: Iterable[tuple[str, Any, Any]]) -> Iterator[str]:
    """Yield each option (name, value, default) whose value is not the default."""
    for name, value, usual in options:
        if value != usual:
            yield from (f"--{name}", f"{value:g}" if isinstance(value, float) else str(value))


def _line(command: str, words: Iterable[str]) -> str:
    return shlex.join(["python", "manage.py", command, *words])
