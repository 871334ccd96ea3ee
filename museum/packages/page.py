"""The packages' section of docs/museum.md, written from what came out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from museum.page import FILE, between, linked, paragraphs, steps

MARKS = "packages"


def write(results: Sequence[dict[str, Any]]) -> None:
    FILE.write_text(with_results(FILE.read_text(encoding="utf-8"), results), encoding="utf-8")


def with_results(text: str, results: Sequence[dict[str, Any]]) -> str:
    return between(text, MARKS, lines(results))


def lines(results: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "| package | trial | verdict | faults needed | schedules |"
    yield "|---|---|---|---|---|"
    for result in results:
        for each in result["trials"]:
            needed = ", ".join(fault.split()[0] for fault in each.get("faults", ())) or "none"
            told = (
                each["trial"],
                word(each["verdict"]),
                needed if each.get("moves") else "",
                each.get("schedules", ""),
            )
            yield f"| `{result['pins'][0]}` | {' | '.join(map(str, told))} |"
    yield ""
    for result in results:
        yield from _package(result)


def word(verdict: str) -> str:
    return "exhausted, kept" if verdict == "kept" else verdict


def _package(result: dict[str, Any]) -> Iterator[str]:
    yield f"### {result['package']}"
    yield ""
    yield from paragraphs(result["text"])
    yield from paragraphs(
        f"The calls: [{result['file']}](../{result['file']}). Other versions: {linked(result['others'])}."
    )
    told: set[str] = set()
    for each in result["trials"]:
        if each["verdict"] == "not decided" and each["cause"] not in told:
            told.add(each["cause"])
            cause = re.sub(r"(\w+)\.py\b", r"`\1`", each["cause"])  # no file of ours
            yield from paragraphs(f"**{each['trial']}**: not decided: {cause}.")
        if each.get("moves") and each["sentence"] not in told:
            told.add(each["sentence"])
            yield from paragraphs(
                f"**{each['trial']}**: {each['verdict']}: {each['sentence']}. The smallest order:"
            )
            yield from steps(each["moves"])
