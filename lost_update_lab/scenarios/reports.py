"""Results in other forms: Markdown for a pull request, JUnit XML for CI, a page to step through."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from lost_update_lab.scenarios.result import KEPT, Result


def markdown(results: Iterable[Result]) -> str:
    """For a pull request: one line for each scenario, and the smallest order of each that is not kept."""
    results = list(_each(results))
    lines = ["| scenario | verdict | schedules | what it means |", "|---|---|---|---|"]
    lines += [
        f"| {_inert(_title(r))} | **{r.verdict}** | {r.schedules} | {_inert(r.sentence)} |" for r in results
    ]
    for result in results:
        if result.verdict != KEPT:
            text, title = str(result), _inert(_title(result))
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            lines += ["", f"<details><summary>{title}: {result.verdict}</summary>", ""]
            lines += [fence, text, fence, "", "</details>"]
    return "\n".join(lines) + "\n"


#: what would be a tag, a cell or code
_ENTITIES = {"|": "&#124;", "`": "&#96;", "\n": " ", "\r": " "}


def _inert(text: str) -> str:
    """Names and values are the user's: in Markdown they are words and nothing else."""
    return escape(text, _ENTITIES)


def _each(results: Iterable[Result]) -> Iterator[Result]:
    """The parts of a comparison, instead of the comparison."""
    for result in results:
        yield from result.parts or (result,)


def _title(result: Result) -> str:
    return f"{result.name} ({result.part})" if result.part else result.name


def page(results: Iterable[Result]) -> str:
    """A self-contained page to step through: the first result that is not kept, or else the first one."""
    every = sorted(results, key=lambda result: result.kept)
    told = json.dumps(every[0].to_json(), default=str).replace("<", "\\u003c")
    return files(__package__).joinpath("page.html").read_text(encoding="utf-8").replace("RESULT", told, 1)


def junit(results: Iterable[Result]) -> str:
    """JUnit XML: one test case for each scenario."""
    results = list(_each(results))
    failed = [r for r in results if r.verdict != KEPT]
    lines = ["<?xml version='1.0' encoding='utf-8'?>"]
    lines.append(f'<testsuite name="lost-update-lab" tests="{len(results)}" failures="{len(failed)}">')
    for result in results:
        lines.append(
            f'<testcase classname="lost-update-lab" name={quoteattr(_title(result))} time="{result.seconds:.3f}">'
        )
        if result in failed:
            lines.append(
                f"<failure message={quoteattr(f'{result.verdict}: {result.sentence}')}>{escape(str(result))}</failure>"
            )
        lines.append("</testcase>")
    return "\n".join([*lines, "</testsuite>", ""])


def write(path: str, results: Iterable[Result], told: Iterable[str]) -> None:
    """A summary in Markdown. `told`: the summaries of other processes."""
    own = list(results)
    Path(path).write_text("\n".join([*told, *([markdown(own)] if own else [])]), encoding="utf-8")
