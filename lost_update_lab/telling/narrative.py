"""A schedule in sentences, with the values that were read and written, and which worker deleted whose lock."""

from __future__ import annotations

from collections.abc import Sequence

from lost_update_lab.model.commands import Step, takes

MOST = 160


def told(steps: Sequence[Step]) -> list[str]:
    """Return one sentence for each step, in order, with the time whenever it moves on."""
    sentences, at = [], 0
    owners: dict[str, str] = {}
    for step in steps:
        time = "" if step.at == at else f"after {step.at / 1_000_000:g} s: "
        at = step.at
        sentences.append(time + _sentence(step) + _whose(step, owners))
    return sentences


def _sentence(step: Step) -> str:
    command, reply = shortened(step.command), shortened(step.reply)
    who = step.task or "the server"
    if step.kind == "step":
        return f"{who} sends {command}" + (f" and hears {reply}" if reply else "")
    if step.kind == "lease":
        return f"the lease of {command} is over on {who}"
    return f"{who} {command}" + (f": {reply}" if reply else "")


def _whose(step: Step, owners: dict[str, str]) -> str:
    """Remember which worker wrote a key last, and say so when another one deletes or overwrites it."""
    words = step.command.split()
    if step.kind == "lease":
        owner = owners.pop(step.command, "")
        return f": {owner} had set it" if owner else ""
    if step.kind != "step" or len(words) < 2:
        return ""
    verb, key = words[0], words[1]
    owner = owners.get(key, "")
    if takes(step):
        owners[key] = step.worker
        return f": over the one that {owner} had set" if owner and owner != step.worker else ""
    if verb in ("DEL", "UNLINK") and step.reply not in ("0", ""):
        owners.pop(key, None)
        return f": it was {owner}'s" if owner and owner != step.worker else ""
    return ""


def shortened(text: str, most: int = MOST) -> str:
    """In one line, without characters that move the cursor of a terminal: a pickled value has some."""
    text = " ".join(text.split())
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return text if len(text) <= most else text[: most - 1] + "…"
