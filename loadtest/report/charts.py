"""The charts, as SVG that needs no script: pygal draws, the page carries it inline."""

from __future__ import annotations

from math import floor, log10
from typing import Any
from xml.etree import ElementTree as ET

import pygal
from pygal.style import Style

from loadtest.report.labels import labels

#: validated pair: blue for what should be, orange for what is
STYLE = Style(
    background="transparent",
    plot_background="transparent",
    foreground="#52514e",
    foreground_strong="#0b0b0b",
    foreground_subtle="#898781",
    font_family="inherit",
    colors=("#6b6a65", "#2a78d6"),
    label_font_size=13,
    major_label_font_size=13,
    legend_font_size=13,
    tooltip_font_size=13,
    value_font_size=12,
    value_colors=("#ffffff", "#ffffff"),
    opacity="1",
    guide_stroke_color="#e3e2dd",
    major_guide_stroke_color="#e3e2dd",
)
LOSING, KEEPING = "#d03b3b", "#2a78d6"


def _chart(**options: Any) -> pygal.HorizontalBar:
    return pygal.HorizontalBar(
        style=STYLE,
        js=(),
        disable_xml_declaration=True,
        no_prefix=False,
        print_values=True,
        margin=8,
        spacing=12,
        legend_at_bottom=True,
        show_y_guides=False,
        show_x_guides=False,
        truncate_label=-1,
        **options,
    )


def ticks(most: float) -> list[float]:
    """Return 0 and the round values up to `most` that the axis names: three to six of them. pygal's own choice of them
    leaves 0 alone where the largest value is just above a power of ten."""
    if most <= 0:
        return [0]
    power = 10 ** floor(log10(most))
    step = next(size for size in (power / 5, power / 2, power, power * 2) if most / size <= 5)
    return [number * step for number in range(int(most // step) + 1)]


def markup(chart: pygal.HorizontalBar) -> str:
    """Return the drawing without the script that pygal adds for its tooltips."""
    root = chart.render_tree()
    for parent in list(root.iter()):
        for script in [child for child in parent if str(child.tag).endswith("script")]:
            parent.remove(script)
    return ET.tostring(root, encoding="unicode")


def final_against_expected(results: list[dict[str, Any]]) -> str:
    """Return bars of the expected and the final balance of each strategy, the losing ones in red."""
    rows = [r for r in results if r.get("expected") is not None]
    if not rows:
        return ""
    rows.reverse()  # pygal draws the first at the bottom
    chart = _chart(height=90 + 62 * len(rows), width=760, value_formatter=lambda value: f"{value:,.0f}")
    chart.x_labels = labels(rows)
    chart.y_labels = ticks(max(max(row["expected"], row["final"]) for row in rows))
    chart.add("expected", [row["expected"] for row in rows])
    chart.add(
        "final", [{"value": r["final"], "color": LOSING if r["lost_amount"] else KEEPING} for r in rows]
    )
    return markup(chart)


def throughput(results: list[dict[str, Any]]) -> str:
    """Return bars of the postings per second of each strategy."""
    rows = [r for r in results if r.get("ops_per_s") is not None]
    if not rows:
        return ""
    rows.reverse()
    chart = _chart(
        height=80 + 40 * len(rows),
        width=760,
        show_legend=False,
        value_formatter=lambda value: f"{value:,.0f}/s",
    )
    chart.x_labels = labels(rows)
    chart.y_labels = ticks(max(row["ops_per_s"] for row in rows))
    bars = [{"value": r["ops_per_s"], "color": LOSING if r["lost_amount"] else KEEPING} for r in rows]
    chart.add("postings/s", bars)
    return markup(chart)
