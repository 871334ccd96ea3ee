"""Money lost so far, while a test runs under Locust's web page: a line of text in its tab, and a page with a chart.

    go → every 2 s: reconcile the open book → (seconds, lost amount) → the tab's row "Lost so far"   ▁▁▂▄▆█ 12,300
                                                                    → /lost-amount/live, which draws it

Locust 2.47 draws three charts, which are fixed in its bundle: requests, response times, users. Of what a test may add
(`template_args`), only the percentiles reach them; a tab of one's own holds a table, and its cells are text.

A reconciliation reads every entry. So the pause after one is at least ten times as long as it took.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import gevent

from loadtest.swarm.bank import BankError

EVERY, SHARE = 2.0, 10
BARS = "▁▂▃▄▅▆▇█"
#: bars in the tab's row
MOST_BARS = 24
RED, GREY = "#d43f3f", "#808080"  # readable on white and on black
log = logging.getLogger(__name__)


class Live:
    """`points`: (seconds since the go, lost amount), of the test that runs or has ended last."""

    def __init__(self) -> None:
        self.points: list[tuple[float, int]] = []
        self._watch: Any = None
        self._began = 0.0

    def begin(self, ask: Callable[[], dict[str, Any]]) -> None:
        """Look again and again, until `end`. `ask`: reconciles the book."""
        self.points, self._began = [(0.0, 0)], time.monotonic()
        self._watch = gevent.spawn(self._look, ask)

    def end(self, lost_amount: int | None) -> None:
        """The test has ended, and this much was lost. None: nobody knows."""
        if self._watch is None:
            return
        self._watch.kill(block=False)
        self._watch = None
        if lost_amount is not None:
            self._add(lost_amount)

    @property
    def running(self) -> bool:
        return self._watch is not None

    def told(self) -> str:
        """Return the points as a line of bars, and the last amount."""
        lost = [amount for _, amount in self.points]
        if not lost:
            return "no test has begun yet"
        step = -(-len(lost) // MOST_BARS)
        shown, most = lost[::-1][::step][::-1], max(lost)
        bars = "".join(BARS[round((len(BARS) - 1) * each / most) if most else 0] for each in shown)
        return f"{bars} {lost[-1]:,}"

    def page(self) -> str:
        """Return the page with the chart. It loads itself again while the test runs."""
        again = f'<meta http-equiv="refresh" content="{EVERY:g}">' if self.running else ""
        state = "The test runs." if self.running else "No test runs."
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8">{again}'
            '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
            "<title>Money lost, live</title></head><body><main><h1>Money lost, live</h1>"
            f'<p role="status">{state} Lost so far, in minor units: <b>{self.points[-1][1] if self.points else 0:,}</b>'
            f'</p>{self.drawing()}<p><a href="/">Back to Locust</a></p></main></body></html>'
        )

    def drawing(self) -> str:
        """Return the chart as SVG."""
        import pygal  # not above: every process of Locust would load it

        style = pygal.style.Style(
            background="transparent",
            plot_background="transparent",
            foreground=GREY,
            foreground_strong=GREY,
            foreground_subtle=GREY,
            colors=(RED,),
        )
        chart = pygal.XY(
            style=style,
            js=(),
            disable_xml_declaration=True,
            show_legend=False,
            dots_size=2,
            fill=True,
            width=900,
            height=400,
            x_title="seconds since the go",
            y_title="lost amount, minor units",
            range=None if any(amount for _, amount in self.points) else (0, 10),
        )
        chart.add("lost amount", [(round(at, 1), amount) for at, amount in self.points])
        return str(chart.render(is_unicode=True))

    def _look(self, ask: Callable[[], dict[str, Any]]) -> None:
        while True:
            began = time.monotonic()
            try:
                self._add(int(ask()["lost_amount"]))
            except (BankError, KeyError) as error:  # a server that is busy may answer the next time
                log.warning("The money lost so far cannot be read: %s", error)
            gevent.sleep(max(EVERY, SHARE * (time.monotonic() - began)))

    def _add(self, lost_amount: int) -> None:
        self.points.append((time.monotonic() - self._began, lost_amount))
