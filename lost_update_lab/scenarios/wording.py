"""Commands and replies as people read them: values in their places, columns by their names, nothing repeated."""

from __future__ import annotations

import re
from collections.abc import Callable

from lost_update_lab.schedule.pending import WAITED
from lost_update_lab.telling.narrative import shortened
from lost_update_lab.telling.parameters import filler, inserted, parted, without_quotes_of_names

MOST = 150
_SELECT = re.compile(r"SELECT (?P<columns>.*?) FROM (?P<rest>.*)", re.DOTALL | re.IGNORECASE)
_ERROR = re.compile(r"[A-Z]\w+: ")
_MANY = 6  # columns that are worth listing
#: in a script a quote is no mere quote of a name
_SCRIPT = re.compile(r"(?:EVAL|FCALL|SCRIPT|FUNCTION)\b", re.IGNORECASE)
#: the end of a SELECT that locks
_LOCKS = re.compile(
    r" (?:FOR (?:NO KEY |KEY )?(?:UPDATE|SHARE)|LOCK IN SHARE MODE)(?: OF [\w., `]{1,60}?)?(?: NOWAIT| SKIP LOCKED)?$",
    re.IGNORECASE,
)


def readable(command: str, reply: str) -> tuple[str, str]:
    """A command as the engine shows it (`text ← values`) and its reply, for people."""
    said = reply.removesuffix(WAITED)
    command, told = _readable(command, said)
    return command, told + reply[len(said) :]


def _readable(command: str, reply: str) -> tuple[str, str]:
    """The text is read before the values are in it: a value may have brackets, commas and places of its own."""
    text, values = parted(command)
    text = " ".join(text.split())
    fill = filler(text, values)
    text = text if _SCRIPT.match(text) else without_quotes_of_names(text)
    if (found := _SELECT.fullmatch(text)) and "(" not in found["columns"]:
        return _select(found["columns"], found["rest"], reply, fill)
    if row := inserted(text, fill):
        even = len(row.columns) == len(row.values)
        pairs = (f"{name} {value}" for name, value in zip(row.columns, row.values, strict=False))
        told = ", ".join(pairs if even else row.values)
        return shortened(f"INSERT INTO {row.table} ({told})", MOST), _count(reply)
    return _brief(fill(text)), _count(reply)


def _select(columns: str, rest: str, reply: str, fill: Callable[[str], str]) -> tuple[str, str]:
    table = rest.split(" ", 1)[0]
    names = [fill(each.removeprefix(f"{table}.")) for each in columns.split(", ")]
    rest = fill(rest.replace(f"{table}.", ""))
    if not _ERROR.match(reply) and reply != "no row" and "*" not in columns:
        rows = [row.split(", ") for row in reply.split("; ")]
        if all(len(row) == len(names) for row in rows):
            told = [", ".join(f"{n} {v}" for n, v in zip(names, row, strict=True)) for row in rows]
            reply = "; ".join(told)
    listed = ", ".join(names) if len(names) <= _MANY else "…"
    return _brief(" ".join(("SELECT", listed, "FROM", rest))), shortened(reply, MOST)


def _brief(command: str) -> str:
    """What it locks stands at its end."""
    found = _LOCKS.search(command) if len(command) > MOST else None
    return (
        shortened(command[: found.start()], MOST - len(found[0])) + found[0]
        if found
        else shortened(command, MOST)
    )


def _count(reply: str) -> str:
    """`UPDATE 1`, `INSERT 0 1` → the number of rows."""
    found = re.fullmatch(r"(?:UPDATE|DELETE|INSERT 0) (\d+)", reply)
    if not found:
        return shortened(reply, MOST)
    return f"{found[1]} row" if found[1] == "1" else f"{found[1]} rows"
