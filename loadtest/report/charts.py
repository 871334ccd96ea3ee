"""The charts, as SVG without scripts. pygal draws them, and the page contains them inline."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import pygal
from pygal.style import Style

from ledger.chart import ticks
from loadtest.report.labels import labels

#: a validated pair of colours: one for the expected balance, one for the final one
CHART_STYLE = Style(
    background="transparent",
    plot_background="transparent",
    foreground="#52514e",
    foreground_strong="#0b0b0b",
    foreground_subtle="#898781",
    font_family="inherit",
    colors=("#6b6a65", "#2470c8"),
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
#: width of a character of a value, in pixels
CHARACTER = 8
GAP = 6  # pixels between a bar and a value beside it
EDGE = 12  # pixels above the first row and below the last, at most
LOSING, KEEPING = "#d03b3b", "#2470c8"
#: the most characters of a label; a longer one leaves no room for the bars
LABEL = 40


class _Bars(pygal.HorizontalBar):
    """Bars without pygal's vertical margin of 2 % of the height, which is a wide blank band in a chart of many rows."""

    def _set_view(self) -> None:
        self._box.margin = min(self._box.margin, EDGE / self.height)
        super()._set_view()


def _chart(**options: Any) -> pygal.HorizontalBar:
    return _Bars(
        style=CHART_STYLE,
        js=(),
        disable_xml_declaration=True,
        no_prefix=False,
        print_values=True,
        margin=8,
        margin_right=28,  # half the width of the axis' last number
        spacing=12,
        legend_at_bottom=True,
        show_y_guides=False,
        show_x_guides=False,
        truncate_label=-1,
        **options,
    )


def markup(chart: pygal.HorizontalBar, about: str) -> str:
    """Return the drawing with the title `about`, without pygal's additions for tooltips: a script, and ids that two
    charts on one page would share."""
    root = chart.render_tree()
    root.set("role", "img")
    title = next(each for each in root if str(each.tag).endswith("title"))
    title.text = about
    for parent in list(root.iter()):
        for script in [child for child in parent if str(child.tag).endswith("script")]:
            parent.remove(script)
        if parent is not root:
            parent.attrib.pop("id", None)
    bars = [each for each in root.iter() if str(each.get("class")).startswith("rect reactive")]
    values = [each for each in root.iter() if each.get("class") == "value" and str(each.tag).endswith("text")]
    for bar, value in zip(bars, values, strict=True):  # both lists are ordered by series
        _place(bar, value)
    return ET.tostring(root, encoding="unicode")


def _place(bar: ET.Element, value: ET.Element) -> None:
    """Move a value that does not fit on its bar beside it, in dark. pygal writes it white on the middle of the bar."""
    length = float(bar.get("width") or 0)
    if length < CHARACTER * len(value.text or ""):
        value.set("x", str(float(bar.get("x") or 0) + length + GAP))
        value.set("text-anchor", "start")
        value.set("style", f"fill: {CHART_STYLE.foreground_strong} !important; text-anchor: start !important")


def final_against_expected(results: list[dict[str, Any]]) -> str:
    """Return bars of the expected and the final balance of each strategy, the losing ones in red."""
    rows = [r for r in results if r.get("expected") is not None]
    if not rows:
        return ""
    rows.reverse()  # pygal draws the first row at the bottom
    chart = _chart(height=90 + 62 * len(rows), width=760, value_formatter=lambda value: f"{value:,.0f}")
    chart.x_labels = _short(rows)
    balances = [row[name] for row in rows for name in ("expected", "final")]
    chart.y_labels = ticks(max(balances), min(balances))
    chart.add("expected", [row["expected"] for row in rows])
    chart.add("final", [_bar(row, "final", "{:,.0f}") for row in rows])
    told = [f"{name} {r['final']:,} of {r['expected']:,}" for name, r in zip(labels(rows), rows, strict=True)]
    return markup(chart, f"Final of expected balance: {'; '.join(reversed(told))}")


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
    chart.x_labels = _short(rows)
    chart.y_labels = ticks(max(row["ops_per_s"] for row in rows))
    chart.add("postings/s", [_bar(row, "ops_per_s", "{:,.0f}/s") for row in rows])
    told = [f"{name} {r['ops_per_s']:,.0f}" for name, r in zip(labels(rows), rows, strict=True)]
    return markup(chart, f"Postings per second: {'; '.join(reversed(told))}")


def _bar(row: dict[str, Any], name: str, form: str) -> dict[str, Any]:
    """Return one value. If the strategy loses money it is red, and says so: some readers cannot see the colour."""
    if not row["lost_amount"]:
        return {"value": row[name], "color": KEEPING}
    return {"value": row[name], "color": LOSING, "formatter": lambda value: f"{form.format(value)}, loses"}


def _short(rows: list[dict[str, Any]]) -> list[str]:
    """Return the labels. A long one loses its middle: a third-party lock has its module before its name."""
    half = LABEL // 2
    return [each if len(each) <= LABEL else f"{each[: half - 1]}…{each[-half:]}" for each in labels(rows)]
