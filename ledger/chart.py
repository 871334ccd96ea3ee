"""Line charts for pages that allow no inline style and no script: pygal draws, admin.css colours."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10
from xml.etree import ElementTree as ET

import pygal
from django.utils.safestring import SafeString, mark_safe
from pygal.style import Style

#: the sizes with which pygal reserves room; admin.css sets the same ones
STYLE = Style(label_font_size=12, major_label_font_size=12, legend_font_size=13, font_family="inherit")
WIDTH, HEIGHT = 760, 240

Series = Sequence[tuple[float, float]]


def ticks(most: float, least: float = 0) -> list[float]:
    """Return 0 and round values from `least` to `most` as labels of the axis: three to six on the longer side of 0.

    pygal itself labels nothing but 0 if the largest value is just above a power of ten.
    """
    longer = max(most, -least)
    if longer <= 0:
        return [0]
    power = 10 ** floor(log10(longer))
    step = next(size for size in (power / 5, power / 2, power, power * 2) if longer / size <= 5)
    below, above = int(max(0, -least) // step), int(max(0, most) // step)
    return [number * step for number in range(-below, above + 1)]


def over_time(lines: dict[str, Series], about: str, unit: str) -> SafeString:
    """Return a drawing of `lines`: name → (seconds, value) pairs. `about` is what the drawing shows, in words."""
    points = [point for line in lines.values() for point in line]
    chart = pygal.XY(
        style=STYLE,
        js=(),
        css=(),
        disable_xml_declaration=True,
        width=WIDTH,
        height=HEIGHT,
        margin=8,
        margin_right=24,
        show_dots=False,
        legend_at_bottom=True,
        legend_at_bottom_columns=len(lines),
        show_x_guides=False,
        x_value_formatter=lambda value: f"{value:g} s",
        value_formatter=lambda value: f"{value:,.0f} {unit}".strip(),
    )
    chart.x_labels = ticks(max(x for x, _ in points))
    chart.y_labels = ticks(max(y for _, y in points), min(y for _, y in points))
    for name, line in lines.items():
        chart.add(name, list(line))
    return _bare(chart.render_tree(), about)


def _bare(root: ET.Element, about: str) -> SafeString:
    """Return the drawing with the title `about`, and without pygal's styles, scripts, ids, tooltips and the comments
    that say where pygal comes from."""
    root.set("role", "img")
    for parent in list(root.iter()):
        for attribute in ("id", "style"):
            parent.attrib.pop(attribute, None)
        for child in list(parent):
            name = str(child.tag)
            unused = not isinstance(child.tag, str) or name.endswith(("defs", "script", "style", "desc"))
            if unused or (name.endswith("title") and parent is not root):
                parent.remove(child)
    title = next(each for each in root if str(each.tag).endswith("title"))
    title.text = about
    return mark_safe(ET.tostring(root, encoding="unicode"))  # noqa: S308  (ElementTree escapes)
