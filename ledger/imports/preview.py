"""What a file holds before anything of it is posted, and which of its lines are left to mend afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ledger.imports.progress import PROBLEMS
from ledger.imports.upload import Upload
from ledger.models import ImportBatch

#: lines of each kind that are shown
SHOWN = 10


@dataclass(frozen=True)
class Preview:
    """The first lines of a file, good and bad, in their order. `problem`: why it cannot be imported at all."""

    name: str
    problem: str
    good: int
    bad: int
    amount: int
    lines: list[dict[str, Any]]


def preview(upload: Upload) -> Preview:
    """Return what is to be said of a file. Nothing is stored."""
    parsed = upload.parsed
    lines = [{"number": each.number, "line": each, "problem": ""} for each in parsed.good[:SHOWN]] + [
        {"number": each.number, "line": None, "problem": each.problem} for each in parsed.bad[:SHOWN]
    ]
    return Preview(
        name=upload.name,
        problem=parsed.problem,
        good=len(parsed.good),
        bad=len(parsed.bad),
        amount=sum(each.amount for each in parsed.good),
        lines=sorted(lines, key=lambda each: each["number"]),
    )


def failed_lines(batch: ImportBatch) -> bytes:
    """Return the header of the batch's file and each of its lines that was not posted, byte by byte as they came."""
    assert batch.file
    sent = bytes(batch.file.content).splitlines()
    numbers = batch.lines.filter(state__in=PROBLEMS).order_by("number").values_list("number", flat=True)
    return b"\n".join([*sent[:1], *(sent[number - 1] for number in numbers), b""])
