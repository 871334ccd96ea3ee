"""Make commands and replies readable: short names of locks and tables, values in place of parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lost_update_lab.model.commands import Step
from lost_update_lab.model.epoch import Epoch
from lost_update_lab.schedule.pending import LOOKED, WAITED
from lost_update_lab.telling.parameters import filler, inserted, parted

_UUID = re.compile(r"\b([0-9a-f]{4})[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_HEX = re.compile(r"\b([0-9a-f]{4})[0-9a-f]{12,}\b")
#: the number of a thread in front of a shortened token: another one in each process
_THREAD = re.compile(r"\b\d{12,}:(?=[0-9a-f]{4}…)")
#: A is process 1, B process 2 (an older result names the letter again)
_WORKER = re.compile(r"\S+?:100000([1-8]):(?:main|[A-H])\b")
_CLOCK = re.compile(r"\b(\d\d):(\d\d):(\d\d\.\d{3})(?: UTC)?")
_AT = re.compile(rf" \(at {_CLOCK.pattern} and {_CLOCK.pattern}\)| at {_CLOCK.pattern}")
_DAY = 86_400
_QUALIFIED = re.compile(r'"?ledger_(\w+)"?\."?(\w+)"?')
_TABLE = re.compile(r'"?ledger_(\w+)"?')
_SELECT = re.compile(r"SELECT (.*?) FROM (\w+)(.*)", re.DOTALL)
_COUNT = re.compile(r"(?:UPDATE|DELETE) (\d+)")
_UPDATE = re.compile(r"UPDATE (\w+) SET (.*?)( WHERE .*)?", re.DOTALL)
#: every statement names the only book
_BOOK = re.compile(r"\((?:\w+\.)?book_id = book AND ([^()]*(?:\([^()]*\))?[^()]*)\)")
_ORDER = re.compile(r" ORDER BY [\w., ]+? ASC(?= FOR|$)")
#: the reply of a command that failed: the class of the error and what the server said
ERROR = re.compile(r"[A-Z]\w+: ")
#: the columns worth showing, of those that the ORM always fetches
_TOLD = ("balance", "version", "fence", "amount", "balance_before", "balance_after", "token", "owner")


def plain(sentence: str) -> str:
    """Return what was reconciled after a schedule in the words of the schedule: the workers by their letters, for host
    and process are the same for all, and times as the scheduler's clock counts them from its start. If that clock
    stood still, the sentence has no times: all of them would be equal."""
    told = _WORKER.sub(lambda found: "ABCDEFGH"[int(found[1]) - 1], sentence)
    if len(set(_CLOCK.findall(told))) < 2:
        return _AT.sub("", told)
    return _CLOCK.sub(lambda found: f"{_since_start(found):g} s", told)


def _since_start(clock: re.Match[str]) -> float:
    hours, minutes, seconds = (float(part) for part in clock.groups())
    return round((hours * 3600 + minutes * 60 + seconds - Epoch.shows) % _DAY, 3)


@dataclass(frozen=True, slots=True)
class Gloss:
    """`book`: the primary key that is part of every name."""

    book: str

    def steps(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        return tuple(
            step._replace(command=command, reply=reply)
            for step in steps
            for command, reply in [self.of(step)]
        )

    def state(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the state of the servers after a step, in the same words."""
        keys = [
            {**row, "key": self._name(row["key"]), "value": _short(row["value"])} for row in state["keys"]
        ]
        rows = {self._name(name): value for name, value in state["rows"].items()}
        waiting = {who: self.of_command(text) for who, text in state["waiting"].items()}
        return {**state, "keys": keys, "rows": rows, "waiting": waiting}

    def sentence(self, text: str) -> str:
        return plain(self._name(text))

    def of_command(self, command: str) -> str:
        return self.of(Step(0, "", "", "step", command, "", 0))[0]

    def _name(self, text: str) -> str:
        short = text.replace(f"{{{self.book}}}:", "").replace(f"{self.book}:", "").replace(self.book, "book")
        return short.replace(f"'{self.book.replace('-', '')}'", "book")  # as MariaDB keeps it

    def of(self, step: Step) -> tuple[str, str]:
        command, reply = self._name(step.command), self._name(step.reply.removesuffix(WAITED))
        text, values = parted(command)
        if text.startswith(("SELECT", "UPDATE", "INSERT", "DELETE")):
            command, rows = _sql(text, values, reply)
            reply = reply if ERROR.match(reply) else rows
        return _short(command), _short(reply) + WAITED * step.reply.endswith(WAITED)


def _sql(text: str, values: list[str], reply: str) -> tuple[str, str]:
    text = _QUALIFIED.sub(r"\2", text.replace("`", '"'))
    text = _TABLE.sub(r"\1", text).replace('"', "")
    if put := inserted(text, filler(text, values)):
        row = dict(zip(put.columns, put.values, strict=False))
        told = ", ".join(f"{name} {row[name]}" for name in _TOLD if name in row)
        rows = reply if reply in ("", LOOKED) else "1 row"
        return f"INSERT {put.table}" + (f" ({told})" if told else ""), rows
    text = filler(text, values)(text)
    text = _ORDER.sub("", _BOOK.sub(r"\1", text))
    if found := _UPDATE.fullmatch(text):
        text = f"UPDATE {found[1]} SET {_assignments(found[2])}{found[3] or ''}"  # noqa: S608  (only shown)
    if found := _SELECT.fullmatch(text):
        columns = [column.split(".")[-1] for column in found[1].split(", ")]
        return f"SELECT {_columns(columns)} FROM {found[2]}{found[3]}", _rows(columns, reply)  # noqa: S608
    count = _COUNT.fullmatch(reply)
    return text, f"{count[1]} row{'s' * (count[1] != '1')}" if count else reply


def _assignments(text: str) -> str:
    told = [each for each in text.split(", ") if each.split(" = ")[0] in _TOLD]
    return ", ".join(told) or text


def _columns(columns: list[str]) -> str:
    return ", ".join(columns) if len(columns) < 4 else ", ".join(c for c in columns if c in _TOLD) or "…"


def _rows(columns: list[str], reply: str) -> str:
    rows = [dict(zip(columns, row.split(", "), strict=False)) for row in reply.split("; ") if row != "no row"]
    told = ["; ".join(f"{c} {row[c]}" for c in _TOLD if c in row) for row in rows]
    return " | ".join(told) if any(told) else reply


def _short(text: str) -> str:
    return _THREAD.sub("…:", _HEX.sub(r"\1…", _UUID.sub(r"\1…", text)))
