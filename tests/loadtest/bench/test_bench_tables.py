"""On a terminal of 80 columns no figure of the bench is broken."""

import io

from rich.console import Console

from loadtest.bench.locks.table import contended
from loadtest.report.console import show


def test_a_figure_is_whole_on_a_narrow_terminal() -> None:
    row = {
        "strategy": "python-redis-lock",
        "measure": "contended",
        "processes": 8,
        "per_s": {"median": 11_970},
        "wait_ms": {"p50": 0.02, "p99": 187.12, "max": 1_218.29},
        "fairness": {"median": 0.16},
        "commands": {"median": 11.17},
        "server_cpu": {"median": 0.21},
        "right": False,
    }
    out = io.StringIO()
    show(Console(file=out, width=80), [contended([row], "here")], [])
    words = out.getvalue().split()
    figures = ["11,970", "0.02", "187.12", "1,218.29", "0.16", "11.17", "0.21", "wrong"]
    assert [each for each in (*figures, "sections", "commands", "counter") if each not in words] == []
    assert max(map(len, out.getvalue().splitlines())) <= 80
