"""The books on a terminal: a table of accounts, and what happened in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ledger.reconcile.account import AccountBooks
from ledger.reconcile.book import Books

ROWS = 20
COLUMNS = (
    "account",
    "opening",
    "expected",
    "final",
    "drift",
    "lost",
    "updates lost",
    "created",
    "forks",
    "entries",
)


def show(console: Console, title: str, books: Books | AccountBooks) -> None:
    """Print the table of `books`, then one sentence for each thing that went wrong."""
    console.print(_table(title, books))
    for sentence in sentences(books):
        console.print(f"• {escape(sentence)}", highlight=False)
    console.print()


def _table(title: str, books: Books | AccountBooks) -> Table:
    table = Table(title=escape(title), title_justify="left", title_style="bold")
    for name in COLUMNS:
        table.add_column(name, justify="left" if name == "account" else "right", no_wrap=True)
    accounts = books.accounts if isinstance(books, Books) else (books,)
    for each in sorted(accounts, key=_gravity, reverse=True)[:ROWS]:
        table.add_row(*_cells(escape(each.number), each), style=_style(each))
    if len(accounts) > ROWS:
        table.add_row(f"… and {len(accounts) - ROWS} that lost less or nothing")
    if len(accounts) > 1:
        table.add_section()
        table.add_row(*_cells("all", books), style=_style(books))
    return table


def _gravity(books: AccountBooks) -> tuple[int, ...]:
    return (books.created_amount, books.lost_amount, books.lost_updates, not books.balanced)


def _style(books: Books | AccountBooks) -> str:
    return "" if books.right else "red"


def _cells(name: str, books: Books | AccountBooks) -> tuple[str, ...]:
    numbers = (
        books.opening,
        books.expected,
        books.final,
        books.drift,
        books.lost_amount,
        books.lost_updates,
        books.created_amount,
        books.forks,
        books.entries,
    )
    return (name, *(f"{number:,}" for number in numbers))


def sentences(books: Books | AccountBooks) -> Iterator[str]:
    """What went wrong, or that nothing did."""
    if books.right:
        yield (
            f"The books balance: opening {books.opening:,} and {books.entries:,} entries make {books.final:,}; "
            "nothing is lost and nothing was created."
        )
    losses = {"First loss": books.first_loss, "Worst loss": books.worst_loss, "Last loss": books.last_loss}
    told = set()
    for name, loss in losses.items():
        if loss and loss.sentence not in told:
            told.add(loss.sentence)
            yield f"{name}, account {loss.account}: {loss.sentence}"
    if isinstance(books, Books) and books.worst_torn:
        yield f"{books.torn:,} torn postings; the worst: {books.worst_torn.sentence}"
    yield from (f"Created: {each}" for each in books.created)
    yield from (f"Does not add up: {each}" for each in books.problems)
    if books.undecided:
        yield f"{books.undecided:,} operations lie beyond the break: nobody can say whether they are in the balance."
