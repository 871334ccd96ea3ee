"""docs/museum.md, written from the data: each case with its story and the smallest order that breaks it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from lost_update_lab.telling.markdown import wrapped
from museum.data import ROOT
from museum.replay import named
from museum.table import chance, needs, speed, within

FILE = ROOT / "docs" / "museum.md"
MARKS = "museum"
_VERBS = {
    "SELECT": "reads",
    "INSERT": "inserts",
    "UPDATE": "writes",
    "DELETE": "deletes",
    "COMMIT": "commits",
    "ROLLBACK": "rolls back",
}


def write(data: dict[str, Any]) -> None:
    FILE.write_text(with_data(FILE.read_text(encoding="utf-8"), data), encoding="utf-8")


def with_data(text: str, data: dict[str, Any]) -> str:
    return between(text, MARKS, lines(data))


def between(text: str, marks: str, written: Iterable[str]) -> str:
    """The page with the text between two marks replaced."""
    begin, end = f"<!-- {marks}: begin -->", f"<!-- {marks}: end -->"
    head, _, rest = text.partition(begin)
    _, _, tail = rest.partition(end)
    return "\n".join([f"{head}{begin}", "", *written, f"{end}{tail}"])


def paragraphs(text: str) -> Iterator[str]:
    """Each in short lines, and with an empty line after it. Code stays as it is."""
    for paragraph in text.split("\n\n"):
        yield from [paragraph.rstrip()] if paragraph.startswith("    ") else wrapped(paragraph)
        yield ""


def steps(moves: Iterable[dict[str, Any]]) -> Iterator[str]:
    for number, told in enumerate(order(moves), 1):
        yield from wrapped(f"{number}. {told}")
    yield ""


def lines(data: dict[str, Any]) -> Iterator[str]:
    yield "| case | broken form | verdict | faults needed | found by chance | schedules | s |"
    yield "|---|---|---|---|---|---|---|"
    for result in data["results"]:
        for form in result["broken"]:
            told = (
                form["form"],
                form["verdict"],
                needs(form),
                chance(form),
                form["schedules"],
                form["seconds"],
            )
            yield f"| {_link(result)} | {' | '.join(map(str, told))} |"
    yield ""
    yield "| case | mended form | verdict | within | speed | schedules | s |"
    yield "|---|---|---|---|---|---|---|"
    for result in data["results"]:
        for form in result["mended"]:
            told = form["form"], "exhausted", within(form), speed(form), form["schedules"], form["seconds"]
            yield f"| {_link(result)} | {' | '.join(map(str, told))} |"
    yield ""
    for result in data["results"]:
        yield from _case(result)


def _link(result: dict[str, Any]) -> str:
    return f"[{result['case']}](#{result['case']})"


def _case(result: dict[str, Any]) -> Iterator[str]:
    yield f"## {result['case']}"
    yield ""
    yield from paragraphs(result["text"])
    yield from paragraphs(
        f"Source: {linked(result['source'])}. The code: [{result['file']}](../{result['file']}). "
        f"Its cure: [{result['cure']}](cures.md#{_anchor(result['cure'])})."
    )
    for place, form in enumerate(result["broken"], 1):
        yield from paragraphs(
            f"**{form['form']}**: {form['verdict']}. {_sentence(form['sentence'])} The smallest order:"
        )
        yield from steps(form["moves"])
        yield from paragraphs(
            f"Again: `python -m museum --replay {named(result['case'], place, form['id'])}`"
        )
        if form["default"] == "kept":
            yield "The default invariant does not find it: each outcome is that of some serial order."
            yield ""


def linked(text: str) -> str:
    """`owner/repo#number` as a link. GitHub leads from an issue's address to a pull request where it is one."""
    return re.sub(r"([\w.-]+/[\w.-]+)#(\d+)", r"[\g<0>](https://github.com/\1/issues/\2)", text)


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def order(moves: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The steps in sentences. What only opens a transaction is left out."""
    for move in moves:
        if move["kind"] == "step" and move["command"].lower().startswith("begin"):
            continue
        yield _step(move) + "".join(f"; {each}" for each in move["changes"])


def _step(move: dict[str, Any]) -> str:
    who, command, reply = move["who"] or "the server", move["command"], move["reply"]
    told = f" → {_code(reply)}" if reply else ""
    if move["kind"] != "step":
        return f"**{who}**: {command}{told}"
    verb = _VERBS.get(command.split(" ")[0].upper(), "sends")
    if verb in ("commits", "rolls back"):
        return f"**{who}** {verb}{told}"
    return f"**{who}** {verb}: {_code(command)}{told}"


def _code(text: str) -> str:
    return f"`{re.sub('`', '', text)}`"
