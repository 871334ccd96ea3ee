"""The card of one lock, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.markup import escape
from rich.table import Table

from loadtest.report.card import Card
from loadtest.report.explorer_table import how_again
from loadtest.report.terminal import STYLE


def table(card: Card) -> Table:
    """Return a row for each hazard that touches the lock: what it claims, what was found; `!` contradicts the claim."""
    drawn = Table(title=escape(f"Can I trust {card.strategy} with money?"), title_justify="left")
    for heading in ("hazard", "claimed", "every order", "really done"):
        drawn.add_column(heading, no_wrap=True)
    for row in card.rows:
        mark = " [bold red]![/]" if row.contradicts else ""
        drawn.add_row(row.hazard, "yes" if row.claimed else "", _word(row.explored), _word(row.done) + mark)
    return drawn


def sentences(card: Card) -> Iterator[str]:
    """Yield the answer, and the smallest schedule that takes money, or time, from it."""
    yield from card.answer()
    if rate := card.load["ops_per_s"]:
        yield f"Under a swarm: {rate:,.0f} postings/s, p99 {card.load['latency_ms']['p99']:,.0f} ms."
    yield "What each hazard is: docs/reference.md#hazards"
    if card.smallest:
        yield "The smallest schedule:"
        yield from (f"  {number}. {told}" for number, told in enumerate(card.schedule(), 1))
        yield f"  {how_again(card.smallest)}"


def _word(word: str) -> str:
    return f"[{STYLE[word]}]{word}[/]" if word else "[dim]·[/]"
