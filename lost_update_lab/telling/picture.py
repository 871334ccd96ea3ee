"""A schedule as rows of a picture, for the terminal and for the page: which worker acts, what the others do, and what
the step has changed on the servers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lost_update_lab.telling.folding import AGAIN, folded

STANDS, DEAD, WAITS = "stands", "dead", "waits"
#: kinds of steps that are not faults
PLAIN_KINDS = ("step", "look", "lease", "resume", "cancel", AGAIN)
_DEADLY = ("crash", "worker-dies-renewal-lives")


class PictureRow(NamedTuple):
    """`lanes`: worker → STANDS, DEAD, WAITS or "". `effects`: what changed, in words. `fault`: is it a fault?"""

    step: Mapping[str, Any]
    lanes: Mapping[str, str]
    effects: Sequence[str]
    fault: bool


def workers(steps: Sequence[Mapping[str, Any]]) -> list[str]:
    return sorted({step["worker"] for step in steps if step["worker"]})


def rows(steps: Sequence[Mapping[str, Any]], opening: Mapping[str, Any] | None) -> list[PictureRow]:
    """`steps` and `opening` as in explore.json. Polls are folded."""
    lanes = dict.fromkeys(workers(steps), "")
    found, before = [], opening
    for step in folded(steps):
        who, state = step["worker"], step.get("state")
        if step["kind"] == "pause":
            lanes[who] = STANDS
        elif step["kind"] == "resume":
            lanes[who] = ""
        elif step["kind"] in _DEADLY:
            lanes[who] = DEAD
        waiting = {task.split(".")[0] for task in state["waiting"]} if state else set()
        shown = {w: lane or (WAITS if w in waiting else "") for w, lane in lanes.items()}
        changed = [] if step["kind"] == "lease" else list(effects(before, state))
        found.append(PictureRow(step, shown, changed, step["kind"] not in PLAIN_KINDS))
        before = state
    return found


def effects(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> Iterator[str]:
    """What has changed on the servers since before the step: balances, keys, rows of lock tables."""
    if before is None or after is None:
        return
    for name, amount in after["balances"].items():
        if (was := before["balances"].get(name)) != amount:
            yield f"{balance(name, after)} {was} → {amount}"
    old = {(row["server"], row["key"]): row for row in before["keys"]}
    new = {(row["server"], row["key"]): row for row in after["keys"]}
    for place, row in new.items():
        yield from _key(old.get(place), row)
    for place, row in old.items():
        if place not in new:
            yield f"key {row['key']}: gone" + (f", was {row['by']}'s" if row["by"] else "")
    yield from (f"row {name}: locked" for name in after["rows"].keys() - before["rows"].keys())
    yield from (f"row {name}: gone" for name in before["rows"].keys() - after["rows"].keys())


def balance(account: str, state: Mapping[str, Any]) -> str:
    """The name of a balance. It needs the account's number only where there are several accounts."""
    return "balance" if len(state["balances"]) == 1 else f"balance {account}"


def _key(was: Mapping[str, Any] | None, row: Mapping[str, Any]) -> Iterator[str]:
    left = f", {seconds(row['ttl_ms'] * 1000)} left" if row["ttl_ms"] is not None else ""
    whose = f"{row['by']}'s" if row["by"] else "there"
    if was is None:
        yield f"key {row['key']}: {whose}{left}"
    elif was["by"] != row["by"]:
        yield f"key {row['key']}: {whose}{left}, was {was['by']}'s"
    elif was["value"] != row["value"]:
        yield f"key {row['key']} = {row['value'][:24]}{left}"
    elif (row["ttl_ms"] or 0) > (was["ttl_ms"] or 0):
        yield f"key {row['key']}: {whose}, again{left.removeprefix(',')}"


def seconds(micros: int) -> str:
    """A virtual time as people write it."""
    return f"{micros / 1_000_000:.3f}".rstrip("0").rstrip(".") + " s"
