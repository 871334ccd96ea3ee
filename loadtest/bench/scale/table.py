"""The tables of `bench scale`, one for each curve: the rates, and the cores that each kind of process used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table

from loadtest.bench.measured import Row
from loadtest.bench.scale.limits import KINDS
from loadtest.bench.tables import blank, fill, span

TITLES = {
    "web": "Processes of the web server, postings/s; cores used",
    "worker": "Background workers of one import, lines/s; cores used",
    "locust": "Processes of Locust, postings/s; cores used",
}
SHOWN = {"web": ("web", "locust"), "locust": ("web", "locust"), "worker": ("worker",)}


def tables(rows: Sequence[Row]) -> Iterator[Table]:
    for along in KINDS:
        points = [row for row in rows if row["along"] == along]
        if not points:
            continue
        kinds = (*SHOWN[along], "postgres", "all")
        yield fill(
            blank(TITLES[along], "processes", "per second", *kinds, "limit"),
            points,
            lambda row: str(row["processes"]),
            lambda row, kinds=kinds: (  # type: ignore[misc]
                span(row["rounds"], 0),
                *(f"{row['cores'].get(kind, 0.0):.2f}" for kind in kinds),
                row["limit"],
            ),
        )
