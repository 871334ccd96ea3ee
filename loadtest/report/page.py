"""index.html: the evidence files of one folder, on one page that can be mailed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.template.loader import render_to_string
from django.utils.safestring import mark_safe

from ledger.reconcile import timeline
from ledger.strategies import known
from loadtest.faults.sentences import about
from loadtest.report import bench, card, charts, explorer, museum, playable
from loadtest.report import faults as matrix
from loadtest.report.command_line import of_report
from loadtest.report.labels import labels
from loadtest.report.runs import run_of
from loadtest.report.strategy_page import sentences, textbook
from loadtest.report.terminal import verdicts
from loadtest.verdict.words import explained
from locks.hazards import Hazard

#: evidence file → the command that writes it
EVIDENCE = {
    "trust": "python manage.py trust",
    "compare": "python manage.py compare",
    "faults": "python manage.py faults",
    "explore": "python manage.py explore",
    "bench": "python manage.py bench",
}
#: evidence file → the field that each of its results has beside a strategy
SAYS = {"trust": "rows", "compare": "verdict", "faults": "verdict", "explore": "verdict"}


class NoEvidence(Exception):
    """The folder has no readable evidence file."""


def load(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the evidence files of `folder` by name. Raises NoEvidence naming the command that makes one."""
    found = {}
    for name, command in EVIDENCE.items():
        path = folder / f"{name}.json"
        try:
            found[name] = json.loads(path.read_text())
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise NoEvidence(f"{path} cannot be read ({error}): make it again with `{command}`") from error
        if not of_the_lab(found[name], SAYS.get(name)):
            raise NoEvidence(f"{path} is not what `{command}` writes: make it again with that")
    if not found:
        names = ", ".join(f"{name}.json" for name in EVIDENCE)
        raise NoEvidence(f"{folder} has none of {names}: make one with `{EVIDENCE['compare']}`")
    return found


def of_the_lab(report: Any, says: str | None) -> bool:
    """Does it have the form of an evidence file? The folder may contain another program's compare.json."""
    results = report.get("results") if isinstance(report, dict) else None
    if not isinstance(results, list):
        return False
    return all(isinstance(each, dict) and (not says or {"strategy", says} <= each.keys()) for each in results)


def write(folder: Path) -> Path:
    """Write `folder`/index.html and the pages that it links to, and return its path. Raises NoEvidence."""
    path, evidence = folder / "index.html", load(folder)
    path.write_text(render_to_string("loadtest/report.html", context(evidence)))
    explorer.write_pages(folder, evidence.get("explore"))
    playable.write(folder)
    return path


def context(evidence: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the context of the template."""
    compare = evidence.get("compare", {})
    results = compare.get("results", [])
    named = dict.fromkeys(
        each.get("strategy") for file in evidence.values() for each in file.get("results", ())
    )
    return {
        "trust": evidence.get("trust"),
        "signs": card.SIGNS,
        "compare": compare,
        "strategies": {slug: own_words(slug) for slug in named if slug in known()},
        "hazards": len(Hazard),
        "hazard_words": {str(hazard): about(hazard) for hazard in Hazard},
        "workloads": workloads(results),
        "compared": compared(results),
        "faults": matrix.context(evidence.get("faults")),
        "explore": explorer.context(evidence.get("explore")),
        "bench": bench.context(evidence.get("bench")),
        "cases": list(museum.cases().values()),
        "runs": {name: run_of(of_report(file, name), file) for name, file in evidence.items()},
        "verdicts": explained(_words(evidence)),
        "commands": [of_report(file, name) for name, file in evidence.items()],
    }


def own_words(slug: str) -> dict[str, Any]:
    """Return the sentences of a strategy, and its textbook page."""
    found = known()[slug]
    return {**sentences(found), "textbook": textbook(found)}


def workloads(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the part of each workload: its results, and two charts of them."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        groups.setdefault(result.get("workload", ""), []).append(result)
    return [
        {
            "slug": slug,
            "results": [
                {
                    **each,
                    "label": label,
                    "drawn": drawing(each),
                    "shown": shown_loss(each),
                    "claim": claim(each.get("claims", [])),
                }
                for label, each in zip(labels(those), those, strict=True)
            ],
            "left": left_out(those),
            "lost": any(each.get("first_loss") for each in those),
            "balances": mark_safe(charts.final_against_expected(those)),  # noqa: S308  (our own drawing)
            "throughput": mark_safe(charts.throughput(those)),  # noqa: S308
        }
        for slug, those in groups.items()
    ]


def left_out(results: list[dict[str, Any]]) -> str:
    """Return why nothing of a workload was run, if there is one common reason, or ""."""
    reasons = {each.get("reason", "") if each["verdict"] == "not-run" else "" for each in results}
    return reasons.pop() if len(reasons) == 1 else ""


def compared(results: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the verdicts, strategies × workloads, or None if there is only one workload."""
    names = list(dict.fromkeys(result.get("workload", "") for result in results))
    if len(names) < 2:
        return None
    rows = verdicts(results)
    return {
        "workloads": names,
        "rows": [
            {"label": label, "words": [words.get(name) for name in names]} for label, words in rows.items()
        ],
    }


def shown_loss(result: dict[str, Any]) -> dict[str, Any] | None:
    """Return the loss that a reader is shown: the clearest; of an older file, the first."""
    loss: dict[str, Any] | None = result.get("clearest_loss") or result.get("first_loss")
    return loss


def drawing(result: dict[str, Any]) -> str:
    """Return the first loss of a result as a two-lane timeline."""
    return mark_safe(timeline.svg(shown_loss(result)))  # noqa: S308  (ElementTree escapes)


def claim(withstands: list[str]) -> str:
    """Return a strategy's claim in words. A long one is described by its exceptions."""
    missing = sorted(set(Hazard) - set(withstands))
    if len(withstands) > len(missing):
        return f"all but {', '.join(missing)}" if missing else "every hazard"
    return ", ".join(sorted(withstands)) or "nothing"


def _words(evidence: dict[str, dict[str, Any]]) -> set[str]:
    results = [result for file in evidence.values() for result in file.get("results", [])]
    return {word for each in results for word in (each.get("verdict", ""), *each.get("under", {}).values())}
