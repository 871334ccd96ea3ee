"""Store parsed lines. A file may have 100,000, so they go to PostgreSQL by COPY, not through the ORM."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

from django.db import connection

from ledger.imports.csvfile import BadLine, GoodLine
from ledger.models import Book, ImportBatch, ImportLine

State = ImportLine.State
COLUMNS = ("number", "state", "problem", "seller", "account", "amount", "reference", "key", "chunk_id")


@dataclass(slots=True)
class ReadLine:
    """A line about to be stored. Its fields are COLUMNS."""

    number: int
    state: str = State.WAITING.value
    problem: str = ""
    seller: str = ""
    account: str = ""
    amount: int | None = None
    reference: str = ""
    key: str = ""
    chunk: int | None = None

    @property
    def waits(self) -> bool:
        return self.state == State.WAITING


def judge(book: Book, good: Sequence[GoodLine], bad: Sequence[BadLine], accounts: set[str]) -> list[ReadLine]:
    """Return a file's lines in their order. Each waits, or has the reason why it will not be posted."""
    lines = [ReadLine(each.number, State.BAD.value, each.problem[:300]) for each in bad]
    taken = _taken(book, [line.key for line in good])
    for each in good:
        line = ReadLine(
            each.number,
            seller=each.seller,
            account=each.account,
            amount=each.amount,
            reference=each.reference,
            key=each.key,
        )
        if line.account not in accounts:
            line.state, line.problem = State.BAD.value, f"no account {line.account} in this book"
        elif line.key in taken:
            line.state, line.problem = _seen_before(line, taken[line.key])
        lines.append(line)
    return sorted(lines, key=lambda line: line.number)


def _seen_before(line: ReadLine, first: ImportLine) -> tuple[str, str]:
    same = (first.account, first.amount) == (line.account, line.amount)
    where = f"({first.batch.run}, {first.batch.name}, line {first.number})"
    problem = f"the reference {line.reference} came before {'' if same else 'with another request '}{where}"
    return (State.KNOWN if same else State.BAD).value, problem[:300]


def _taken(book: Book, keys: list[str]) -> dict[str, ImportLine]:
    """Return the line that holds each of the keys."""
    held = ImportLine.objects.filter(book=book, state__in=ImportLine.TAKEN)
    if not held.exists():
        return {}
    found: dict[str, ImportLine] = {}
    for start in range(0, len(keys), 5000):
        rows = held.filter(key__in=keys[start : start + 5000]).select_related("batch__run")
        found |= {row.key: row for row in rows}
    return found


def store(batch: ImportBatch, lines: Iterable[ReadLine]) -> None:
    """Insert the lines of `batch`."""
    columns = ", ".join((*COLUMNS, "batch_id", "book_id", "attempts", "worker"))
    with connection.cursor() as cursor, cursor.copy(f"COPY ledger_importline ({columns}) FROM STDIN") as copy:
        for line in lines:
            copy.write_row((*astuple(line), batch.pk, batch.book_id, 0, ""))
