"""Commands and replies as people read them: values in their places, columns by their names, nothing repeated."""

from __future__ import annotations

import re

from lost_update_lab.telling.narrative import shortened

MOST = 150
_SELECT = re.compile(r"SELECT (?P<columns>.*?) FROM (?P<rest>.*)", re.DOTALL | re.IGNORECASE)
_INSERT = re.compile(
    r"INSERT INTO (?P<table>\S+) \((?P<columns>[^)]*)\) VALUES \((?P<values>.*?)\)(?P<rest>.*)",
    re.DOTALL | re.IGNORECASE,
)
_ERROR = re.compile(r"[A-Z]\w+: ")
_MANY = 6  # columns that are worth listing
#: in a script a quote is no mere quote of a name
_SCRIPT = re.compile(r"(?:EVAL|FCALL|SCRIPT|FUNCTION)\b", re.IGNORECASE)
_PLACE = re.compile(r"%s|%\(\w+\)s|\$\d+")


def readable(command: str, reply: str) -> tuple[str, str]:
    """A command as the engine shows it (`text ← values`) and its reply, for people."""
    text, _, values = command.partition(" ← ")
    text = " ".join(text.split())
    parts = values.split(", ") if values else []
    for value in parts:
        text = _PLACE.sub(lambda _, value=value: value, text, count=1)  # type: ignore[misc]
    text = text if _SCRIPT.match(text) else text.replace('"', "")
    if (found := _SELECT.fullmatch(text)) and "(" not in found["columns"]:
        return _select(found["columns"], found["rest"], reply)
    if found := _INSERT.match(text):
        names, given = found["columns"].split(", "), found["values"].split(", ")
        pairs = ", ".join(f"{n} {v}" for n, v in zip(names, given, strict=False))
        told = pairs if len(names) == len(given) else found["values"]
        return shortened(f"INSERT INTO {found['table']} ({told})", MOST), _count(reply)
    return shortened(text, MOST), _count(reply)


def _select(columns: str, rest: str, reply: str) -> tuple[str, str]:
    table = rest.split(" ", 1)[0]
    names = [each.removeprefix(f"{table}.") for each in columns.split(", ")]
    rest = rest.replace(f"{table}.", "")
    if not _ERROR.match(reply) and reply != "no row" and "*" not in columns:
        rows = [row.split(", ") for row in reply.split("; ")]
        if all(len(row) == len(names) for row in rows):
            told = [", ".join(f"{n} {v}" for n, v in zip(names, row, strict=True)) for row in rows]
            reply = "; ".join(told)
    listed = ", ".join(names) if len(names) <= _MANY else "…"
    return shortened(" ".join(("SELECT", listed, "FROM", rest)), MOST), shortened(reply, MOST)


def _count(reply: str) -> str:
    """`UPDATE 1`, `INSERT 0 1` → the number of rows."""
    found = re.fullmatch(r"(?:UPDATE|DELETE|INSERT 0) (\d+)(.*)", reply)
    if not found:
        return shortened(reply, MOST)
    return (f"{found[1]} row" if found[1] == "1" else f"{found[1]} rows") + found[2]
