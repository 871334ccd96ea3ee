"""The outcome of a schedule, in a form in which two can be compared: results, final rows, lasting keys.

What differs between any two runs does not count: times of day, the numbers that sequences gave out, random keys. A new
row is identified by its values and by the rows that it refers to, not by its number.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any
from uuid import UUID

from lost_update_lab.model.digest import digest
from lost_update_lab.snapshot.catalogue import Table

NOW, RANDOM, NEW = "‹now›", "‹random›", "‹new›"
_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*")
#: how far references are followed to tell new rows apart
ROUNDS = 3

Row = Mapping[str, Any]
Rows = Mapping[Table, Sequence[Row]]


class ResultText(str):
    """A worker's result as text; `value`: the result itself. Two results with the same text are the same."""

    value: Any = None
    plain: Any = None

    @classmethod
    def of(cls, value: Any) -> ResultText:
        found = plain(value)
        made = cls(json.dumps(found, default=str, ensure_ascii=False))
        made.value, made.plain = value, found
        return made


def plain(value: Any) -> Any:
    """A result as JSON knows it. An object with no text of its own is represented by its class."""
    if value is None or isinstance(value, bool | int | float | str):
        return comparable(value)
    if isinstance(value, datetime | date | UUID):
        return comparable(str(value))
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, set | frozenset):
        return sorted((plain(each) for each in value), key=repr)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if hasattr(value, "status_code") and hasattr(value, "content"):  # a response of a web framework
        return {"status": value.status_code, "body": _body(value.content)}
    if type(value).__module__ in ("decimal", "fractions", "enum"):
        return str(value)
    return f"a {type(value).__qualname__}"


def _body(content: Any) -> Any:
    text = content.decode(errors="replace") if isinstance(content, bytes) else str(content)
    try:
        return plain(json.loads(text))
    except ValueError:
        return text


def comparable(value: Any) -> Any:
    """A text without its times of day and its random keys."""
    if isinstance(value, str):
        return _TIME.sub(NOW, _UUID.sub(RANDOM, value))
    return value


@dataclass(frozen=True, slots=True)
class Outcome:
    """`answers`: for each worker, (returned or raised, what). `rows`: for each table that has changed since the
    beginning, its rows as sorted texts. `numbers`: those that sequences gave to new rows."""

    answers: tuple[tuple[str, Any], ...]
    rows: Mapping[str, tuple[str, ...]]
    keys: Mapping[str, str]
    numbers: frozenset[int] = field(default=frozenset(), compare=False)

    def left_the_same(self, other: Outcome) -> bool:
        return (self.rows, self.keys) == (other.rows, other.keys)

    def answered_the_same(self, other: Outcome, workers: Collection[int]) -> bool:
        """… where any number that a sequence gave to a new row counts as equal to another."""
        pairs = [(self.answers[index], other.answers[index]) for index in workers]
        return all(
            one == another or _unnumbered(one, self.numbers) == _unnumbered(another, other.numbers)
            for one, another in pairs
        )


def _unnumbered(value: Any, numbers: frozenset[int]) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return NEW if value in numbers else value
    if isinstance(value, dict):
        return {key: _unnumbered(each, numbers) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_unnumbered(each, numbers) for each in value]
    return value


def canonical(
    rows: Rows, opening: Rows, left_out: Collection[tuple[str, str]]
) -> tuple[dict[str, tuple[str, ...]], frozenset[int]]:
    """`rows`: those of the tables that have changed; `opening`: the same tables as they were. Returns the rows of each
    table as texts, and the numbers that new rows got."""
    old = {t: {name: {row[name] for row in opening[t]} for name in t.meaningless} for t in rows}
    colours: dict[tuple[int, Hashable], str] = {}
    for _ in range(ROUNDS):
        colours = {
            (table.oid, row[table.surrogate]): digest(
                _text(table, row, colours, old, left_out).encode()
            ).hex()
            for table in rows
            for row in rows[table]
            if table.surrogate and row[table.surrogate] not in old[table][table.surrogate]
        }
    found = {
        table.title: tuple(sorted(_text(table, row, colours, old, left_out) for row in rows[table]))
        for table in rows
    }
    new = (row[n] for t in rows for row in rows[t] for n, before in old[t].items() if row[n] not in before)
    return found, frozenset(number for number in new if isinstance(number, int))


def _text(
    table: Table,
    row: Row,
    colours: Mapping[tuple[int, Hashable], str],
    old: Mapping[Table, Mapping[str, set[Any]]],
    left_out: Collection[tuple[str, str]],
) -> str:
    refers, told = dict(table.refers), {}
    for name, value in row.items():
        if (table.title, name) in left_out:
            continue
        if value not in old[table].get(name, (value,)):
            told[name] = NEW
        elif name in refers and (refers[name], value) in colours:
            told[name] = f"{NEW} {colours[refers[name], value]}"
        else:
            told[name] = comparable(value)
    return json.dumps(told, sort_keys=True, ensure_ascii=False)
