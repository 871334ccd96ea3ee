"""One step of a schedule in words: the keys, rows and balances that it changed, or else what it found."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from loadtest.findings.gloss import ERROR
from lost_update_lab.telling.picture import seconds

#: as in explore.json: a step, and the state of the servers before or after it
Step: TypeAlias = Mapping[str, Any]
State: TypeAlias = Mapping[str, Any]
#: keys of the ledger itself on Redis: their changes are told as balances
_LEDGER = "ledger:"
_READ = re.compile(r"\[?(?:balance )?(-?\d+)")
_WROTE = re.compile(r"SET (?:\w+ = [^,]+, )*?balance = (-?\d+)\b")


def deeds(step: Step, before: State, after: State, rows: dict[str, str]) -> list[str]:
    """Return what the step did. `rows`: row of a lock table → the worker that made it; updated here."""
    done = [*_keys(step, before, after), *_rows(step, before, after, rows), *_money(step, before, after)]
    done = done or list(_found(step, before, rows))
    if error := ERROR.match(step["reply"]):
        done.append(f"is told `{error[0].removesuffix(': ')}`")
    return done


def _keys(step: Step, before: State, after: State) -> Iterator[str]:
    old, new = _listed(before), _listed(after)
    for place, row in new.items():
        if what := _written(old.get(place), row):
            yield what + _where(place[0])
    for place, was in old.items():
        if place not in new:
            yield f"deletes {_whose(was['by'], step)} `{was['key']}`{_where(place[0])}"


def _written(was: Mapping[str, Any] | None, row: Mapping[str, Any]) -> str:
    left = f" for {seconds(row['ttl_ms'] * 1000)}" if row["ttl_ms"] else ""
    key = f"`{row['key']}`"
    number = f" to {row['value']}" if row["value"].isdigit() and not left else ""
    if was is None:
        return f"sets {key}{number}{left}"
    if was["by"] not in ("", row["by"]) and not (number and was["value"] != row["value"]):
        return f"sets {key}{number}{left} over {was['by']}'s"
    if was["value"] != row["value"]:
        return f"changes {key}{number}{left}"
    if row["ttl_ms"] is not None and was["ttl_ms"] is None:
        return f"gives {key} a lease of {seconds(row['ttl_ms'] * 1000)}"
    return f"renews {key}{left}" if (row["ttl_ms"] or 0) > (was["ttl_ms"] or 0) else ""


def _whose(owner: str, step: Step) -> str:
    return "its own" if owner == step["worker"] else f"{owner}'s" if owner else "the"


def _listed(state: State) -> dict[tuple[str, str], Mapping[str, Any]]:
    return {(row["server"], row["key"]): row for row in state["keys"] if not row["key"].startswith(_LEDGER)}


def _where(server: str) -> str:
    return "" if server == "redis" else f" on {server}"


def _rows(step: Step, before: State, after: State, rows: dict[str, str]) -> Iterator[str]:
    for name in after["rows"].keys() - before["rows"].keys():
        rows[name] = step["worker"]
        yield f"inserts row `{name}`"
    for name in before["rows"].keys() - after["rows"].keys():
        yield f"deletes {_whose(rows.pop(name, ''), step)} row `{name}`"
    for name in after["rows"].keys() & before["rows"].keys():
        if after["rows"][name] != before["rows"][name]:
            rows[name] = step["worker"]
            yield f"changes row `{name}`"


def _money(step: Step, before: State, after: State) -> Iterator[str]:
    command, reply = step["command"], step["reply"]
    changed = [
        f"{'balance' if len(after['balances']) == 1 else name} {before['balances'][name]} → {amount}"
        for name, amount in after["balances"].items()
        if before["balances"].get(name) != amount
    ]
    verb = "commits" if command.startswith("COMMIT") else "writes"
    if changed:
        yield f"{verb} ({', '.join(changed)})"
    elif "account" in command and "balance" in command and (read := _READ.match(reply)):
        if command.startswith(("SELECT", "HMGET", "HGET")):
            if "FOR UPDATE" in command:
                yield "locks the row"
            yield f"reads {read[1]}"
        elif command.startswith("UPDATE") and reply.startswith("0 "):
            yield "writes nothing: no row fits"
        elif wrote := _WROTE.search(command):
            yield f"writes {wrote[1]}"


def _found(step: Step, before: State, rows: Mapping[str, str]) -> Iterator[str]:
    """Yield the keys and rows that the step names: another worker's, or none."""
    words = step["command"].split()
    if step["command"].startswith("ROLLBACK"):
        yield "rolls back"
    if "lockrecord" in step["command"]:
        yield from (
            f"finds {of}'s row `{name}`"
            for name, of in rows.items()
            if name in before["rows"] and of != step["worker"]
        )
    there = {row["key"] for row in before["keys"]}
    for key in words[3:4] if words[:1] == ["EVALSHA"] else words[1:2]:
        if of := holder(before, "", key):
            if of != step["worker"]:
                yield f"finds {of}'s `{key}`"
        elif key not in there and _is_key(key):
            yield f"finds no `{key}`"


def _is_key(word: str) -> bool:
    return bool(re.search(r"A\d{4}", word)) and not word.startswith(_LEDGER)


def holder(state: State, server: str, key: str) -> str:
    return next((r["by"] for r in state["keys"] if r["key"] == key and server in ("", r["server"])), "")
