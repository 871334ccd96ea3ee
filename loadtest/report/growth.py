"""Drawings of how cost grows: postings per second over accounts and callers, reconcile over entries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pygal

from loadtest.report.charts import CHART_STYLE, markup

Row = Mapping[str, Any]
Points = list[tuple[float, float]]
COLOURS = ("#2a78d6", "#d07a1f", "#6b6a65", "#2f8f5b")


class Drawing(NamedTuple):
    name: str  # of its file, without the suffix
    about: str
    svg: str


def drawings(rows: Sequence[Row]) -> Iterator[Drawing]:
    """Yield each drawing for which `rows` has points."""
    rows = [row for row in rows if "reason" not in row]  # a failed strategy has no point
    for along, label in (("accounts", "accounts, 8 callers"), ("callers", "callers on one account")):
        series: dict[str, Points] = {}
        for row in rows:
            if row.get("measure") == "growth" and row["along"] == along:
                series.setdefault(row["strategy"], []).append((row[along], row["per_s"]))
        if series:
            about = f"Postings a second over the number of {along}"
            yield Drawing(f"growth-{along}", about, _draw(series, label, "postings a second", about))
    scale: dict[str, Points] = {}
    for row in rows:
        if row.get("measure") == "scale":
            scale.setdefault(row["along"], []).append((row["processes"], row["per_s"]))
    if scale:
        about = "Postings, or imported lines, a second over the number of processes"
        yield Drawing("scale", about, _draw(scale, "processes", "a second", about))
    entries = [(row["entries"], row["seconds"]) for row in rows if row.get("measure") == "reconcile"]
    if entries:
        about = "Seconds of reconcile over the entries of a book"
        yield Drawing("growth-entries", about, _draw({"reconcile": entries}, "entries", "seconds", about))


def write(rows: Sequence[Row], folder: Path) -> Iterator[Path]:
    """Write each drawing as an SVG; yield the files."""
    folder.mkdir(parents=True, exist_ok=True)
    for drawing in drawings(rows):
        file = folder / f"{drawing.name}.svg"
        file.write_text(drawing.svg)
        yield file


def _draw(series: Mapping[str, Points], x: str, y: str, about: str) -> str:
    """Draw the series. The steps on the horizontal axis grow by factors and are evenly spaced. The vertical axis is
    logarithmic."""
    style = CHART_STYLE.__class__(**{**CHART_STYLE.to_dict(), "colors": COLOURS})
    steps = sorted({point[0] for points in series.values() for point in points})
    chart = pygal.Line(
        style=style,
        js=(),
        disable_xml_declaration=True,
        width=760,
        height=380,
        legend_at_bottom=True,
        x_title=x,
        y_title=y,
        logarithmic=True,
        truncate_legend=-1,
    )
    chart.x_labels = [f"{step:,}" for step in steps]
    for name, points in series.items():
        held = dict(points)
        chart.add(name, [held.get(step) for step in steps])
    return markup(chart, about)
