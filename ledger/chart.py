"""Charts for pages that allow no inline style and no script: pygal draws, admin.css colours."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import pygal
from django.utils.safestring import SafeString, mark_safe
from pygal.style import Style

#: the sizes with which pygal reserves room; admin.css sets the same ones
STYLE = Style(label_font_size=12, major_label_font_size=12, legend_font_size=13, font_family="inherit")
#: pixels: a drawing of its own, one of two side by side
WIDE, HALF, HEIGHT = 760, 460, 240
#: what admin.css colours
PLAIN, GOOD, BAD = "plain", "good", "bad"


class ChartLine(NamedTuple):
    """A line of a chart over time. `kind`: PLAIN, GOOD or BAD. `points`: (seconds, value) pairs."""

    name: str
    kind: str
    points: Sequence[tuple[float, float]]


class Bar(NamedTuple):
    """A bar; a `bad` one has the colour and the word of the legend that say so."""

    name: str
    value: float
    bad: bool


def ticks(most: float, least: float = 0, parts: int = 5) -> list[float]:
    """Return 0 and round values from `least` to `most` as labels of the axis, at most `parts` on the longer side of 0.

    pygal itself labels nothing but 0 if the largest value is just above a power of ten.
    """
    longer = max(most, -least)
    if longer <= 0:
        return [0]
    power = 10 ** floor(log10(longer))
    sizes = (power / 5, power / 2, power, power * 2, power * 5)
    step = next(size for size in sizes if longer / size <= parts)
    below, above = int(max(0, -least) // step), int(max(0, most) // step)
    return [number * step for number in range(-below, above + 1)]


def rounded(value: float) -> str:
    """Return a round value as a short label: 500, 20 k, 1.5 M."""
    for least, size, unit in ((10**9, 10**9, "G"), (10**6, 10**6, "M"), (10**4, 10**3, "k")):
        if abs(value) >= least:
            return f"{value / size:g} {unit}"
    return f"{value:,.0f}"


def over_time(lines: Sequence[ChartLine], about: str, width: int = WIDE) -> SafeString:
    """Return a drawing of `lines`. `about` says in words what it shows."""
    points = [point for line in lines for point in line.points]
    chart = pygal.XY(
        **_options(width, HEIGHT),
        show_dots=False,
        show_legend=len(lines) > 1,
        legend_at_bottom_columns=len(lines),
        show_x_guides=False,
        x_value_formatter=lambda value: f"{value:g} s",
    )
    chart.x_labels = ticks(max(x for x, _ in points))
    chart.y_labels = ticks(max(y for _, y in points), min(y for _, y in points))
    for line in lines:
        chart.add(line.name, list(line.points))
    return _bare(chart.render_tree(), about, [line.kind for line in lines])


def bars(rows: Sequence[Bar], about: str, legend: tuple[str, str]) -> SafeString:
    """Return a drawing of `rows`, the first one at the top. `legend`: the words for (good, bad)."""
    upward = list(reversed(rows))  # pygal draws the first row at the bottom
    kinds = [bad for bad in (False, True) if any(row.bad == bad for row in rows)]
    chart = pygal.HorizontalStackedBar(
        **_options(HALF, 80 + 30 * len(upward)),
        spacing=8,
        legend_at_bottom_columns=len(kinds),
        show_y_guides=False,
        truncate_label=40,
    )
    chart.x_labels = [row.name for row in upward]
    chart.y_labels = ticks(max(row.value for row in rows), parts=3)  # the names leave little room
    for bad in kinds:
        chart.add(legend[bad], [row.value if row.bad == bad else None for row in upward])
    return _bare(chart.render_tree(), about, [BAD if bad else GOOD for bad in kinds])


def _options(width: int, height: int) -> dict[str, Any]:
    return {
        "style": STYLE,
        "js": (),
        "css": (),
        "disable_xml_declaration": True,
        "width": width,
        "height": height,
        "margin": 8,
        "margin_right": 24,
        "legend_at_bottom": True,
        "truncate_legend": -1,
        "value_formatter": rounded,
    }


def _bare(root: ET.Element, about: str, kinds: Sequence[str]) -> SafeString:
    """Return the drawing with the title `about`, with the kind of each series as a class, and without pygal's styles,
    scripts, ids and tooltips."""
    root.set("role", "img")
    for parent in list(root.iter()):
        for attribute in ("id", "style"):
            parent.attrib.pop(attribute, None)
        names = parent.get("class", "").split()
        parent.set(
            "class",
            " ".join(
                names + [kind for at, kind in enumerate(kinds) if {f"serie-{at}", f"color-{at}"} & {*names}]
            ),
        )
        for child in list(parent):
            name = str(child.tag)
            unused = not isinstance(child.tag, str) or name.endswith(("defs", "script", "style", "desc"))
            if unused or (name.endswith("title") and parent is not root):
                parent.remove(child)
    title = next(each for each in root if str(each.tag).endswith("title"))
    title.text = about
    return mark_safe(ET.tostring(root, encoding="unicode"))  # noqa: S308  (ElementTree escapes)
