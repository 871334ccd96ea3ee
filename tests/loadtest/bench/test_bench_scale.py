"""bench scale: what a point measures, and what it names as the limit."""

from __future__ import annotations

import io
import subprocess
import sys
import time

import pytest
from rich.console import Console

from loadtest.bench import scale
from loadtest.bench.measured import Measured
from loadtest.bench.scale import limits
from loadtest.bench.scale.table import tables
from loadtest.report.console import show

IDLE = {"web": 0.1, "locust": 0.1, "postgres": 0.1, "all": 0.4}


@pytest.mark.parametrize(
    ("used", "cores", "limit"),
    [
        (IDLE, 8, "waiting: locks, the disk, each other"),
        (IDLE | {"web": 1.9, "all": 2.4}, 8, "web: 2 of its processes, a core each"),
        (IDLE | {"locust": 0.9, "web": 0.5, "all": 1.6}, 8, "locust: 1 of its processes, a core each"),
        (IDLE | {"web": 1.2, "all": 1.6}, 2, "waiting: locks, the disk, each other"),
        (IDLE | {"web": 1.2, "postgres": 0.5, "all": 1.9}, 2, "2 cores are busy"),
        (IDLE | {"all": 1.9}, 2, "2 cores are busy, 1.6 by other programs"),
    ],
)
def test_the_limit_is_named_from_the_processor_time(used: dict[str, float], cores: int, limit: str) -> None:
    assert limits.limit_of(used, {"web": 2, "locust": 1}, cores) == limit


@pytest.mark.usefixtures("committed_db")
def test_a_process_that_works_is_seen_and_one_that_is_of_no_kind_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    busy = [sys.executable, "-c", "while True: pass"]
    monkeypatch.setattr(limits, "KINDS", {"web": ("web-here",)})
    began = time.time()
    with limits.Processor() as processor:
        working, other = (subprocess.Popen([*busy, name]) for name in ("web-here", "else"))
        try:
            used = 0.0
            while used < 0.1:  # of a second, however busy the machine is
                time.sleep(limits.EVERY)
                used = max((kinds.get("web", 0.0) for _, kinds in processor._looks), default=0.0)
        finally:
            for process in (working, other):
                process.kill()
                process.wait()
    found = processor.used(began, time.time())
    assert found["web"] > 0
    assert found.keys() <= {"web", "postgres", "all"}


@pytest.mark.usefixtures("committed_db")
def test_one_look_in_a_span_counts_with_those_around_it() -> None:
    processor = limits.Processor()
    processor._looks = [(at, {"web": at / 2, "all": at}) for at in (10.0, 12.0, 14.0)]
    assert processor.used(11.0, 13.0) == {"web": 0.5, "all": 1.0}
    assert processor.used(20.0, 21.0) == {"web": 0.5, "all": 1.0}
    assert processor.used(13.5, 14.5) == {"web": 0.5, "all": 1.0}


@pytest.mark.usefixtures("committed_db")
def test_a_point_that_fails_is_a_row_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "posting", lambda *_: {}["the port"])
    found = Measured()
    scale.run(scale.ScalePlan(parts=frozenset({"web"}), processes=(1, 2), rounds=1), found)
    assert [(row["verdict"], row["reason"]) for row in found.results] == [("inconclusive", "'the port'")] * 2
    (table,) = tables(found.results)
    assert table.row_count == 2


def test_the_rounds_of_a_point_are_one_row_and_fit_a_narrow_terminal() -> None:
    rounds = [
        {
            "per_s": rate,
            "cores": IDLE | {"web": rate / 1000},
            "limit": "2 cores are busy",
            "right": rate != 900,
        }
        for rate in (1200.0, 900.0, 1000.0)
    ]
    row = scale._row("web", 2, rounds)
    assert (row["per_s"], row["right"], row["cores"]["web"]) == (1000.0, False, 1.0)
    assert (row["rounds"]["min"], row["rounds"]["max"]) == (900.0, 1200.0)
    out = io.StringIO()
    show(Console(file=out, width=80), list(tables([row])), [])
    assert "1,000" in out.getvalue()
    assert max(map(len, out.getvalue().splitlines())) <= 80


@pytest.mark.deep
@pytest.mark.usefixtures("committed_db")
@pytest.mark.parametrize("along", scale.CURVES)
def test_each_curve_is_measured(along: str) -> None:
    found = Measured()
    scale.run(
        scale.ScalePlan(parts=frozenset({along}), processes=(1,), rounds=1, seconds=1.0, lines=20), found
    )
    (row,) = found.results
    assert (row.get("reason"), row["right"]) == (None, True)
    assert row["per_s"] > 0
    assert row["cores"][along] > 0
