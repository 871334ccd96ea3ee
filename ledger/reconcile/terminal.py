"""Print reconciled books: a table of accounts, and sentences on what happened."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ledger.reconcile.account import AccountBooks
from ledger.reconcile.book import Books

ROWS = 20
WIDEST = 1000
#: the figures of an account, and whether a column appears only if some value is not 0
COLUMNS = {
    "opening": ("opening", False),
    "expected": ("expected", False),
    "final": ("final", False),
    "drift": ("drift", True),
    "lost": ("lost_amount", True),
    "updates lost": ("lost_updates", True),
    "created": ("created_amount", True),
    "forks": ("forks", True),
    "entries": ("entries", False),
}


def show(console: Console, title: str, books: Books | AccountBooks) -> None:
    """Print the table of `books`, then one sentence for each thing that went wrong."""
    table = _table(title, books)
    whole = console.options.update(
        max_width=WIDEST
    )  # no figure is ever cut: a narrow terminal wraps the lines
    console.width = max(console.width, console.measure(table, options=whole).maximum)
    console.print(table)
    for sentence in sentences(books):
        console.print(f"• {escape(sentence)}", highlight=False)
    console.print()


def _table(title: str, books: Books | AccountBooks) -> Table:
    """Return a table with one row for each account. Of many accounts, only the wrong ones have a row."""
    accounts = books.accounts if isinstance(books, Books) else (books,)
    worst = sorted(accounts, key=_gravity, reverse=True)[:ROWS]
    shown = worst if len(accounts) <= ROWS else [each for each in worst if not each.right]
    figures = {
        name: figure
        for name, (figure, only_wrong) in COLUMNS.items()
        if not only_wrong or any(getattr(each, figure) for each in (*accounts, books))
    }
    table = Table(title=escape(title), title_justify="left", title_style="bold")
    for name in ("account", *figures):
        table.add_column(name, justify="left" if name == "account" else "right", no_wrap=True)

    def row(name: str, each: Books | AccountBooks) -> None:
        cells = (f"{getattr(each, figure):,}" for figure in figures.values())
        table.add_row(name, *cells, style="" if each.right else "red")

    for each in shown:
        row(escape(each.number), each)
    if rest := len(accounts) - len(shown):
        wrong = sum(not each.right for each in accounts) - len(shown)
        others = f"… and {rest:,}" if shown else f"{rest:,} accounts"
        table.add_row(f"{others}, of which {wrong:,} are wrong" if wrong else f"{others} that balance")
    if len(accounts) > 1:
        table.add_section()
        row("all", books)
    return table


def _gravity(books: AccountBooks) -> tuple[int, ...]:
    return (books.created_amount, books.lost_amount, books.lost_updates, not books.balanced)


def sentences(books: Books | AccountBooks) -> Iterator[str]:
    """Yield what went wrong, or that nothing did."""
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
        yield f"{books.undecided:,} operations lie beyond the break: whether they are in the balance is unknown."
