"""How cost grows, as drawings: postings a second over accounts and over callers, reconcile over entries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pygal

from loadtest.report.charts import STYLE, _markup

Row = Mapping[str, Any]
COLOURS = ("#2a78d6", "#d07a1f", "#6b6a65", "#2f8f5b")


def write(rows: Sequence[Row], folder: Path) -> Iterator[Path]:
    """Write one SVG for each drawing that `rows` have points for; yield the files."""
    folder.mkdir(parents=True, exist_ok=True)
    for along, label in (("accounts", "accounts, 8 callers"), ("callers", "callers on one account")):
        points = [row for row in rows if row["measure"] == "growth" and row["along"] == along]
        series: dict[str, list[tuple[float, float]]] = {}
        for row in points:
            series.setdefault(row["strategy"], []).append((row[along], row["per_s"]))
        if points:
            yield _draw(series, label, "postings a second", folder / f"growth-{along}.svg")
    entries = [(row["entries"], row["seconds"]) for row in rows if row["measure"] == "reconcile"]
    if entries:
        yield _draw({"reconcile": entries}, "entries", "seconds", folder / "growth-entries.svg")


def _draw(series: Mapping[str, list[tuple[float, float]]], x: str, y: str, file: Path) -> Path:
    style = STYLE.__class__(**{**STYLE.to_dict(), "colors": COLOURS})
    chart = pygal.XY(
        style=style,
        js=(),
        width=760,
        height=380,
        legend_at_bottom=True,
        x_title=x,
        y_title=y,
        logarithmic=True,
    )
    chart.xrange = None
    for name, points in series.items():
        chart.add(name, points)
    file.write_text(_markup(chart))
    return file
