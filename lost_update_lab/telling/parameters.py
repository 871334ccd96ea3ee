"""A command and the values of its parameters: kept apart until people read them, then each put in its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

#: between a command and its values
VALUES = " ← "
#: between two values: no value has it in it. It is white space, so `shortened` makes it a blank
BETWEEN = ",\x1f"
#: a percent sign; a place of psycopg's (by its order, or by its name)
_PERCENT = re.compile(r"%%|%[sbt]|%\((?P<name>[^)]*)\)[sbt]")
#: a place of PostgreSQL's (by its number)
_NUMBERED = re.compile(r"\$(?P<number>\d+)")
_LITERAL = re.compile(r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"]|"")*"|`[^`]*`""", re.DOTALL)
_INSERT = re.compile(
    r"INSERT INTO (?P<table>\S+) \((?P<columns>[^)]*)\) VALUES \(", re.DOTALL | re.IGNORECASE
)


class Inserted(NamedTuple):
    """The first row that an INSERT names. `values`: of its columns, in their order."""

    table: str
    columns: list[str]
    values: list[str]


def with_values(text: str, params: Mapping[str, Any] | Iterable[Any], told: Callable[[Any], str]) -> str:
    """The command and its values. `told`: a value for people."""
    if isinstance(params, Mapping):
        names = [place["name"] for place in _places(text) if place["name"] is not None]
        params = [params[name] for name in names if name in params]
    return text + VALUES + BETWEEN.join(listed(told(value)) for value in params)


def parted(command: str) -> tuple[str, list[str]]:
    """The command as it was sent, and its values. A text without places has none: the arrow is one of its own."""
    text, arrow, values = command.partition(VALUES)
    if arrow and (next(_places(text), None) or _NUMBERED.search(text)):
        return text, values.split(BETWEEN)
    return command, []


def listed(command: str) -> str:
    """The command with its values behind it, as a quotation."""
    return command.replace(BETWEEN, ", ")


def filler(text: str, values: list[str]) -> Callable[[str], str]:
    """How to put the values into the parts of this text, one part after the other."""
    left = iter(values)
    if next(_places(text), None):
        return lambda part: _PERCENT.sub(lambda at: at[0] if at[0] == "%%" else next(left, at[0]), part)
    numbered = {str(number): value for number, value in enumerate(values, 1)}
    return lambda part: _NUMBERED.sub(lambda at: numbered.get(at["number"], at[0]), part)


def without_quotes_of_names(text: str) -> str:
    return _LITERAL.sub(lambda found: found[0][1:-1] if found[0].startswith('"') else found[0], text)


def inserted(text: str, fill: Callable[[str], str]) -> Inserted | None:
    """What is an INSERT of values, with the values in their places. None: it is none."""
    if not (found := _INSERT.match(text)):
        return None
    values = [fill(part) for part in items(text[found.end() :])]
    return Inserted(found["table"], found["columns"].split(", "), values)


def items(text: str) -> list[str]:
    """The parts of a list, which ends at a bracket that closes it, or at the end of the text. Commas in brackets and in
    quotes divide nothing."""
    parts, begin, at, depth = list[str](), 0, 0, 0
    while at < len(text):
        if literal := _LITERAL.match(text, at):
            at = literal.end()
            continue
        if text[at] in ")]" and not depth:
            break
        depth += (text[at] in "([") - (text[at] in ")]")
        if text[at] == "," and not depth:
            parts.append(text[begin:at].strip())
            begin = at + 1
        at += 1
    return [*parts, text[begin:at].strip()]


def _places(text: str) -> Iterator[re.Match[str]]:
    return (each for each in _PERCENT.finditer(text) if each[0] != "%%")
