"""A counterexample in a few sentences: which worker took, read, wrote and deleted what, by the changes on the servers.

The commands differ from lock to lock (a plain SET, a script, a row), but their effects on the servers do not. So
nothing here depends on a lock. Consecutive steps of one worker are one sentence, and a fault is a sentence of its
own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from loadtest.findings.effects import State, Step, deeds, holder
from lost_update_lab.telling.picture import PLAIN_KINDS, seconds

LONGEST = 60


class BriefEvent(NamedTuple):
    """`who`: the worker, or "" for a fault or a server; `what` is then a whole sentence."""

    who: str
    what: str


def brief(example: Mapping[str, Any]) -> list[str]:
    """Return the sentences of a counterexample of explore.json. The last one is the outcome. A schedule that could
    not be repeated has no states, so it is told as it was found, command by command."""
    if example["opening"] is None:
        return list(example["sentences"])
    told = [_sentence(who, [e.what for e in events]) for who, events in groupby(_events(example), _who)]
    return [*told, *_outcome(example)]


def _events(example: Mapping[str, Any]) -> list[BriefEvent]:
    found: list[BriefEvent] = []
    before, rows = example["opening"], dict[str, str]()
    for step in example["steps"]:
        after = step["state"]
        for each in _of_step(step, before, after, rows):
            if each not in found[-1:]:  # a repeated poll
                found.append(each)
        before = after
    return _without_end(found) if example["verdict"] == "stalled" else found


def _without_end(events: list[BriefEvent]) -> list[BriefEvent]:
    """Cut the repetitions of a worker that waits for ever."""
    cut = len(events)
    while cut and events[cut - 1] in events[: cut - 1]:
        cut -= 1
    return [*events[:cut], BriefEvent("", "And so on.")] if cut < len(events) else events


def _who(event: BriefEvent) -> object:
    return event.who or event  # sentences of their own


def _of_step(step: Step, before: State, after: State, rows: dict[str, str]) -> Iterator[BriefEvent]:
    for task in after["waiting"].keys() - before["waiting"].keys():
        yield BriefEvent(_named(task), "waits in the server")
    if step["kind"] == "lease":
        of = holder(before, step["task"], step["command"])
        lease = _unnumbered(step["command"])
        whose = f"{of}'s `{lease}`" if of else f"`{lease}`"
        yield BriefEvent("", f"At {seconds(step['at'])} the lease of {whose} is over.")
    elif step["kind"] == "resume":
        yield BriefEvent(_named(step["task"]), "goes on")
    elif step["kind"] not in PLAIN_KINDS:
        yield BriefEvent("", f"**{_fault(step)}.**")
    else:
        for what in deeds(step, before, after, rows):
            yield BriefEvent(_named(step["task"]), what)


def _named(task: str) -> str:
    worker, _, thread = task.partition(".")
    return f"{worker}'s second thread" if thread else worker


def _fault(step: Step) -> str:
    if step["kind"] == "lost-reply":
        return f"The reply to {_named(step['task'])} is lost"
    who = _named(step["task"]) if step["worker"] else f"`{step['task']}`:"
    reply = _unnumbered(re.sub(r"EVALSHA .*", "a script", " ".join(step["reply"].split())))
    shown = reply if len(reply) <= LONGEST else reply[: LONGEST - 1] + "…"
    return f"{who} {step['command']}" + (f" ({shown})" if shown else "")


def _unnumbered(text: str) -> str:
    """Without the numbers of rows: a sequence gave them, and they are others elsewhere."""
    return re.sub(r"\[\d+\]\.", ".", text)


def _sentence(who: object, done: Sequence[str]) -> str:
    if isinstance(who, BriefEvent):
        return who.what
    once, again = _once(_on_several(done))
    *most, last = once
    return f"{who} {', '.join(most)}{' and ' if most else ''}{last}{', again and again' if again else ''}."


def _on_several(done: Sequence[str]) -> list[str]:
    """Merge the same action on several servers, and the steps of a growing number."""
    told = []
    for (what, number), each in groupby(done, lambda text: _parted(text)[::2]):
        parts = [_parted(text)[1] for text in each]
        if number:
            told.append(what + parts[0] + (f", and so on to {parts[-1]}" if parts[1:] else ""))
        else:
            *most, last = parts
            told.append(what + (", ".join(most) + " and " if most else "") + last)
    return told


def _once(done: list[str]) -> tuple[list[str], bool]:
    """Cut a cycle of up to three actions that repeats at least three times until the end. Returns whether there was
    one."""
    for at in range(len(done)):
        rest = done[at:]
        for length in (1, 2, 3):
            if len(rest) >= 3 * length and rest[length:] == rest[:-length]:
                return done[: at + length], True
    return done, False


def _parted(text: str) -> tuple[str, str, bool]:
    """Return the action, its place or number, and whether it is a number."""
    found = re.fullmatch(r"(.* on )(redis-\d)|(changes .* to )(\d+)", text)
    if not found:
        return text, "", False
    return (found[1], found[2], False) if found[1] else (found[3], found[4], True)


def _outcome(example: Mapping[str, Any]) -> Iterator[str]:
    last: str = example["sentences"][-1] if example["sentences"] else ""
    if example["verdict"] == "lost":
        last = last.partition(" with ")[0].partition(";")[0]
    yield last.rstrip(".") + "."
