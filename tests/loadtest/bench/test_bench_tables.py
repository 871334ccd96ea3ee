"""On a terminal of 80 columns no figure of the bench is broken."""

import io

from rich.console import Console

from loadtest.bench.goals import at_least
from loadtest.bench.locks.table import contended
from loadtest.bench.tables import judged
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


def test_a_goal_that_its_own_run_straddles_is_shown_as_near() -> None:
    goals = [
        at_least("steady", 2, {"min": 2.1, "median": 2.2, "max": 2.3}),
        at_least("unsteady", 2, {"min": 1.5, "median": 2.2, "max": 2.3}),
        at_least("slow", 2, {"min": 1.5, "median": 1.6, "max": 1.9}),
        at_least("absent", 2, None, "it did not run"),
    ]
    out = io.StringIO()
    Console(file=out, width=120).print(judged(goals))
    lines = [line.rstrip() for line in out.getvalue().splitlines() if line.strip()]
    shown = {line.split()[0]: line for line in lines}
    assert shown["steady"].endswith("met")
    assert "2.2  (1.5 to 2.3)" in shown["unsteady"]
    assert shown["unsteady"].endswith("near")
    assert shown["slow"].endswith("missed")
    assert shown["absent"].endswith("not measured: it did not run")
