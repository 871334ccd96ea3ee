"""Changes in place (`SET n = n + 1`, Django's `F()`), taken apart into a read and a write."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: why a change in place that was seen is not tried
APART = "not tried: the explorer cannot take this command apart into a read and a write"
IN_COROUTINE = "not tried: a coroutine would have to wait for the read"
CHANGES_SEVERAL = "not tried: it changes several rows at once"

_NAME = r'(?:"(?:[^"]|"")*"|`[^`]*`|\w+)'
_TABLE = rf"(?P<table>{_NAME}(?:\s*\.\s*{_NAME})?)"
_UPDATE = re.compile(
    rf"\s*UPDATE\s+(?!(?:IGNORE|LOW_PRIORITY)\b){_TABLE}(?:\s+(?:AS\s+)?(?P<alias>{_NAME}))?\s+SET\s+",
    re.IGNORECASE,
)
_INSERT = re.compile(
    rf"\s*INSERT\s+INTO\s+{_TABLE}(?:\s+AS\s+(?P<alias>{_NAME}))?\s*\((?P<columns>[^()]*)\)\s*VALUES\s*\(",
    re.IGNORECASE,
)
_CONFLICT = re.compile(r"\)\s*ON\s+CONFLICT\s*\((?P<keys>[^()]*)\)\s*DO\s+UPDATE\s+SET\s+", re.IGNORECASE)
_EXCLUDED = re.compile(rf"\bEXCLUDED\s*\.\s*({_NAME})", re.IGNORECASE)
#: the new value, of a row that is there already
_NEW = re.compile(rf"{_EXCLUDED.pattern}|\bVALUES?\s*\([^()]*\)", re.IGNORECASE)
_COLUMN = re.compile(rf"(?:{_NAME}\s*\.\s*)?({_NAME})\s*")
_TEXT = re.compile(r"'(?:[^'\\]|\\.|'')*'", re.DOTALL)
_TOKEN = re.compile(rf"{_TEXT.pattern}|{_NAME}|\S", re.DOTALL)
_AFTER = frozenset({"FROM", "WHERE", "RETURNING", "ORDER", "LIMIT"})
#: what looks like one in a command that cannot be taken apart
_LIKE_ONE = re.compile(
    r"\b(?:SET|KEY\s+UPDATE)\b.*?(?<!\w)[\"`]?(?P<column>\w+)[\"`]?\s*="
    r"(?:(?!\b(?:WHERE|FROM|RETURNING)\b)[^,;=])*?\b(?P=column)\b(?!\s*\()"
    r"|\bSET\s*\([^()]*?\b(?P<first>\w+)\b[^()]*\)\s*=[^;]*?\b(?P=first)\b",
    re.IGNORECASE | re.DOTALL,
)

#: a parameter, by its number, while the text is taken apart: so the parts may be put together in any order
_MARK = re.compile("\ue000(\\d+)\ue001")
_PLACE = re.compile(r"%%|%[sbt]")
#: the name of the value that was read, where parameters have names
_READ = "lost_update_lab_read"
Params = Mapping[str, Any] | Sequence[Any] | None
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class InPlace:
    """`column` is set to a value that is made of its own. `read`: asks for this value. `before`, `after`: the command
    around it."""

    column: str
    read: str
    before: str
    after: str
    params: Params

    def reading(self) -> tuple[str, Params]:
        return _with_places(self.read, self.params)

    def writing(self, value: Any) -> tuple[str, Params]:
        """The command with this value."""
        if isinstance(self.params, Mapping):
            return f"{self.before}%({_READ})s{self.after}", {**self.params, _READ: value}
        if self.params is None:  # it was sent as it is
            return f"{self.before.replace('%', '%%')}%s{self.after.replace('%', '%%')}", [value]
        mark = f"\ue000{len(self.params)}\ue001"
        return _with_places(self.before + mark + self.after, [*self.params, value])


def in_place(text: str, params: Params) -> list[InPlace] | None:
    """The changes in place of this command. None: it has one, and cannot be taken apart."""
    marked = _marked(text) if isinstance(params, Sequence) else text
    found = _of_update(marked)
    if found is None and (found := _of_upsert(marked)) is None:
        return None if _LIKE_ONE.search(_NEW.sub("0", _TEXT.sub("''", text))) else []
    return [
        InPlace(column, read, marked[:begin], marked[end:], params) for column, (begin, end), read in found
    ]


def _of_update(text: str) -> list[tuple[str, Span, str]] | None:
    if not (found := _UPDATE.match(text)):
        return None
    given, stop = _list(text, found.end())
    source, tail = _as(found["table"], found["alias"]), text[stop:]
    if re.match(r"FROM\b", tail, re.IGNORECASE):
        source, tail = f"{source}, ", tail[4:]
    returned = next((at for at, word in _outside(text, stop) if word.upper() == "RETURNING"), len(text))
    tail = tail[: len(tail) - (len(text) - returned)]
    if re.search(r"\bCURRENT\s+OF\b", tail, re.IGNORECASE):
        return None
    return [
        (column, span, f"SELECT {text[slice(*span)]} FROM {source} {tail}".rstrip("; \n"))  # noqa: S608
        for column, span in _sets(text, given)
        if _mentions(text[slice(*span)], column, found)
    ]


def _of_upsert(text: str) -> list[tuple[str, Span, str]] | None:
    """An INSERT of one row that is changed in place where it is there already."""
    if not (found := _INSERT.match(text)):
        return None
    values, stop = _list(text, found.end())
    if not (conflict := _CONFLICT.match(text, stop)):
        return None
    names = [_bare(each) for each in found["columns"].split(",")]
    new = {name: f"({text[slice(*span)]})" for name, span in zip(names, values, strict=False)}
    keys = [each.strip() for each in conflict["keys"].split(",")]
    given, _ = _list(text, conflict.end())
    changes = [
        (column, span) for column, span in _sets(text, given) if _mentions(text[slice(*span)], column, found)
    ]
    asked = {_bare(each[1]) for _, span in changes for each in _EXCLUDED.finditer(text, *span)}
    if not new.keys() >= asked | {_bare(key) for key in keys}:
        return None if changes else []
    source, own = _as(found["table"], found["alias"]), found["alias"] or found["table"]
    where = " AND ".join(f"{own}.{key} = {new[_bare(key)]}" for key in keys)
    return [
        (column, span, f"SELECT {_with_new(text[slice(*span)], new)} FROM {source} WHERE {where}")  # noqa: S608
        for column, span in changes
    ]


def _with_new(value: str, new: Mapping[str, str]) -> str:
    return _EXCLUDED.sub(lambda found: new[_bare(found[1])], value)


def _sets(text: str, given: Sequence[Span]) -> Iterator[tuple[str, Span]]:
    """Each column of a SET list, and where its value stands."""
    for begin, end in given:
        equals = next((at for at, word in _outside(text, begin, end) if word == "="), end)
        values = _stripped(text, equals + 1, end)
        if column := _COLUMN.fullmatch(text, begin, equals):
            yield column[1], values
        elif row := re.fullmatch(r"\(([^()]*)\)\s*", text[begin:equals]):
            names, opens = row[1].split(","), text.find("(", equals)
            parts, closes = _list(text, opens + 1) if opens >= 0 else ([], 0)
            if len(parts) == len(names) and text[closes + 1 : end].strip() == "":
                yield from ((name.strip(), part) for name, part in zip(names, parts, strict=True))


def _mentions(value: str, column: str, table: re.Match[str]) -> bool:
    """Is the value made of this column of this table?"""
    own = {_bare(table["table"]), _bare(table["alias"] or table["table"])}
    name = re.compile(rf"(?:({_NAME})\s*\.\s*)?({_NAME})(?!\s*[(.])", re.IGNORECASE)
    named = name.finditer(_TEXT.sub("''", value))
    return any(_bare(each[2]) == _bare(column) and (not each[1] or _bare(each[1]) in own) for each in named)


def _list(text: str, begin: int) -> tuple[list[Span], int]:
    """Where the parts of a list stand, and where it ends: at the bracket that closes it, or at a word that comes after
    a SET."""
    parts = list[Span]()
    start, stop = begin, len(text)
    for at, word in _outside(text, begin):
        if word in (")", ";") or word.upper() in _AFTER:
            stop = at
            break
        if word == ",":
            parts.append(_stripped(text, start, at))
            start = at + 1
    return [*parts, _stripped(text, start, stop)], stop


def _outside(text: str, begin: int, end: int | None = None) -> Iterator[tuple[int, str]]:
    """The words and signs outside of brackets, and the one that closes those around them."""
    depth = 0
    for token in _TOKEN.finditer(text, begin, len(text) if end is None else end):
        if token[0] in ("(", "["):
            depth += 1
            continue
        depth -= (closes := token[0] in (")", "]"))
        if depth <= -closes:
            yield token.start(), token[0]


def _stripped(text: str, begin: int, end: int) -> Span:
    part = text[begin:end]
    return begin + len(part) - len(part.lstrip()), end - (len(part) - len(part.rstrip()))


def _as(table: str, alias: str | None) -> str:
    return f"{table} AS {alias}" if alias else table


def _bare(name: str) -> str:
    """The last part of a name, without its quotes."""
    return re.split(r"\s*\.\s*", name.strip())[-1].strip('"`').lower()


def _marked(text: str) -> str:
    numbers = iter(range(len(text)))
    return _PLACE.sub(lambda found: "%%" if found[0] == "%%" else f"\ue000{next(numbers)}\ue001", text)


def _with_places(text: str, params: Params) -> tuple[str, Params]:
    if not isinstance(params, Sequence):
        return text, params
    order = [int(found[1]) for found in _MARK.finditer(text)]
    return _MARK.sub("%s", text), [params[number] for number in order]
