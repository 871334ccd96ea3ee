"""The page: whole, self-contained, and honest about what is missing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from django.core.management import CommandError, call_command

from ledger.chart import Bar, bars, rounded
from ledger.reconcile import timeline
from loadtest.report import charts, faults, terminal
from loadtest.swarm.compare import Comparison
from tests.ledger.history import History

SCRIPT = "<script>alert(1)</script>"


def result(strategy: str, **changed: Any) -> dict[str, Any]:
    history = History()
    history.write("a", 10, None, worker=SCRIPT)
    history.write("b", 20, None, worker="web-2")
    books = history.books()
    latency = {"p50": 1.0, "p95": 2.0, "p99": 3.0, "max": 4.0}
    own = {"strategy": strategy, "verdict": "lost", "ops_per_s": 12.5, "latency_ms": latency, "retries": 0}
    return {**books.as_json(), **own, "claims": ["contention"], **changed}


def write(folder: Path, *results: dict[str, Any]) -> None:
    environment = {"python": "3.11", "cores": 2}
    (folder / "compare.json").write_text(json.dumps({"environment": environment, "results": results}))


def page(folder: Path) -> str:
    call_command("report", output=folder)
    return (folder / "index.html").read_text()


def test_the_page_has_the_table_the_charts_and_the_loss(tmp_path: Path) -> None:
    write(tmp_path, result("no-lock"), result("setnx", verdict="kept", lost_amount=0, first_loss=None))
    html = page(tmp_path)
    for wanted in (
        "no-lock",
        "contention",
        "setnx",
        "10 lost",
        "reads 100",
        "writes 120",
        "Postings per second",
        "python",
    ):
        assert wanted in html


def test_two_controls_on_two_stores_are_told_apart(tmp_path: Path) -> None:
    write(tmp_path, result("no-lock", store="redis"), result("no-lock", store="postgres"))
    html = page(tmp_path)
    assert "no-lock on redis" in html
    assert "no-lock on postgres" in html
    write(tmp_path, result("no-lock", store="redis"))
    assert "no-lock on redis" not in page(tmp_path)


def test_a_strategy_has_its_own_text_and_a_third_party_lock_none(tmp_path: Path) -> None:
    write(tmp_path, result("watchdog"), result("mylocks:mine"))
    html = page(tmp_path)
    assert html.count('href="#strategy-watchdog"') == html.count('id="strategy-watchdog"') == 1
    assert "the holder is paused or cut off" in html
    assert "strategy-mylocks" not in html


def test_the_page_says_with_which_options_to_run_it_again(tmp_path: Path) -> None:
    plan = Comparison(strategies=("no-lock", "mylocks:mine"), users=7, settings={"poll": 0.02})
    told = {"options": {"plan": plan.as_json()}, "results": [result("no-lock")]}
    (tmp_path / "compare.json").write_text(json.dumps(told))
    html = page(tmp_path)
    line = "python manage.py compare --lock mylocks:mine --users 7 --poll 20ms"
    assert line in html[html.index("Run it again") :]
    assert line in html[: html.index("<table")]


def test_losses_of_a_third_party_lock_are_reported_though_it_claimed_nothing() -> None:
    cell = {"hazard": "pause", "verdict": "lost", "agrees": True, "cause": "10 lost", "command": "again"}
    told = faults.remarks([{**cell, "strategy": "mylocks:mine"}, {**cell, "strategy": "token"}])
    assert told == ["mylocks:mine × pause: lost: 10 lost. Again: again"]
    kept = {**cell, "verdict": "kept", "strategy": "mylocks:mine"}
    assert faults.remarks([kept]) == []


def test_a_kept_verdict_says_what_to_try_next() -> None:
    told = "\n".join(terminal.further([result("no-lock"), result("mylocks:mine", verdict="kept")]))
    assert "no proof" in told
    assert "python manage.py faults --lock mylocks:mine " in told
    assert "python manage.py explore --lock mylocks:mine " in told
    assert terminal.further([result("no-lock")]) == []


def test_a_loss_under_another_workload_is_no_kept() -> None:
    results = [
        result(slug, verdict=verdict, workload=workload)
        for workload, verdict in (("deposits", "kept"), ("stock", "lost"))
        for slug in ("naive-lock", "token")
    ]
    results[-1]["verdict"] = "inconclusive"
    told = "\n".join(terminal.further(results))
    assert "faults --strategy token " in told
    assert "naive-lock" not in told


def test_many_that_kept_the_money_are_not_all_typed() -> None:
    many = [result(f"lock-{number}", verdict="kept") for number in range(30)]
    assert any("manage.py faults    (" in each for each in terminal.further(many))
    told = "\n".join(terminal.further([*many, result("mylocks:mine", verdict="kept")]))
    assert "manage.py explore --lock mylocks:mine    (" in told


def test_a_reason_that_many_share_is_given_once() -> None:
    why = {"verdict": "inconclusive", "cause": "the control kept", "remedy": "more users"}
    many = [result(f"lock-{number}", workload="stock", **why) for number in range(30)]
    told = terminal.remarks([result("no-lock", workload="deposits", agrees=True), *many])
    (sentence,) = told
    assert sentence.startswith("lock-0, lock-1, ")
    assert sentence.endswith("lock-19 and 10 more, stock: the control kept. Remedy: more users.")


def test_several_workloads_have_a_matrix_and_a_table_each(tmp_path: Path) -> None:
    kept = {"verdict": "kept", "lost_amount": 0, "first_loss": None}
    write(tmp_path, result("no-lock", workload="deposits"), result("no-lock", workload="stock", **kept))
    html = page(tmp_path)
    assert "Strategies and workloads" in html
    for slug in ("deposits", "stock"):
        assert html.count(f'<a href="#{slug}">') == html.count(f'<section id="{slug}">') == 1
    row = html[html.index('<th scope="row"><code>no-lock</code>') :]
    assert re.findall(r'class="verdict (\w+)"', row[: row.index("</tr>")]) == ["lost", "kept"]
    assert html.count('<dl class="words">') == 1


def test_a_workload_that_was_not_reached_is_not_reported_as_without_loss(tmp_path: Path) -> None:
    left = {"strategy": "no-lock", "verdict": "not-run", "reason": "the run was stopped", "claims": []}
    write(tmp_path, result("no-lock", workload="deposits"), {**left, "workload": "stock"})
    html = page(tmp_path)
    stock = html[html.index('<section id="stock">') :]
    assert "This workload was not run: the run was stopped." in stock[: stock.index("</section>")]
    assert "was lost." not in html
    assert html.count("Who overwrote whom: <code>deposits</code>") == 1
    assert "Who overwrote whom: <code>stock</code>" not in html


def test_no_request_leaves_the_page_and_no_script_runs(tmp_path: Path) -> None:
    write(tmp_path, result("no-lock"))
    html = page(tmp_path)
    assert SCRIPT not in html
    assert "<script" not in html
    addresses = re.findall(r"""(?:\ssrc=|\shref=|url\()["']?([^"'\s>)]+)""", html)
    beside = [address for address in addresses if not address.startswith(("#", "data:"))]
    assert beside == ["play.html"]  # a link to the file beside it


def test_what_was_not_run_says_why(tmp_path: Path) -> None:
    missing = {"strategy": "zookeeper", "verdict": "not-run", "reason": "install zookeeper", "claims": []}
    write(tmp_path, result("no-lock"), missing)
    assert "install zookeeper" in page(tmp_path)


def test_an_inconclusive_result_shows_its_remedy(tmp_path: Path) -> None:
    write(tmp_path, result("setnx", verdict="inconclusive", cause="nothing overlapped", remedy="more users"))
    assert "nothing overlapped. Remedy: more users." in page(tmp_path)


def test_each_evidence_says_when_by_which_command_and_on_what(tmp_path: Path) -> None:
    versions = {"python": "3.11.7", "django": "5.2"}
    files: dict[str, dict[str, Any]] = {
        "compare": {"started": "2026-03-01T10:00:05.123456+00:00", "results": [result("no-lock")]},
        "faults": {"started": "2026-03-02T11:30:00+00:00", "stopped": True, "results": []},
        "bench": {"results": []},
    }
    for name, file in files.items():
        environment = {"versions": versions, "commit": None, "changed": name == "bench"}
        (tmp_path / f"{name}.json").write_text(json.dumps({**file, "environment": environment}))
    text = re.sub(r"\s+", " ", re.sub(r"<.*?>", " ", page(tmp_path)))
    assert text.count("python manage.py compare , started 2026-03-01 10:00 UTC") == 1
    assert (
        text.count("python manage.py faults , started 2026-03-02 11:30 UTC: it was stopped before its end")
        == 1
    )
    last = text[text.index(" Environment ") :]
    assert last.count("versions python 3.11.7, django 5.2 commit unknown uncommitted changes") == 3
    assert (last.count("changes no"), last.count("changes yes")) == (2, 1)
    assert "started 2026-03-02 11:30 UTC" in last


def test_a_drawing_is_scrolled_rather_than_shrunk(tmp_path: Path) -> None:
    write(tmp_path, result("no-lock"))
    html = page(tmp_path)
    assert html.count("<svg") == html.count('class="scroll drawing"') == 3
    assert ".drawing > svg { min-width:640px }" in html


def test_an_empty_folder_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"manage.py compare") as error:
        page(tmp_path)
    assert error.value.returncode == 2


def test_a_broken_file_names_itself_and_the_command(tmp_path: Path) -> None:
    (tmp_path / "compare.json").write_text("{")
    with pytest.raises(CommandError, match=r"compare.json cannot be read .* `python manage.py compare`"):
        page(tmp_path)


@pytest.mark.parametrize(
    "text", ["[]", "3", '{"results": 3}', '{"results": [{"strategy": "x"}]}', '{"results": [1]}']
)
def test_a_foreign_file_is_reported_as_foreign(text: str, tmp_path: Path) -> None:
    (tmp_path / "compare.json").write_text(text)
    with pytest.raises(CommandError, match=r"compare.json is not what `python manage.py compare` writes"):
        page(tmp_path)


def test_the_words_of_hazards_are_explained_beside_them(tmp_path: Path) -> None:
    card = {"strategy": "token", "rows": [], "answer": ["Not alone."], "schedule": [], "replay": ""}
    (tmp_path / "trust.json").write_text(json.dumps({"results": [card]}))
    assert "SIGSTOP of the holder until long after its lease" in page(tmp_path)


def test_the_timeline_draws_the_lost_write_before_the_one_that_destroyed_it() -> None:
    loss = result("no-lock")["first_loss"]
    texts = [node.text or "" for node in ET.fromstring(timeline.svg(loss)).iter("text")]
    assert texts.index("writes 110 (+10)") < texts.index("writes 120 (+20)")
    assert "10 lost" in texts


def test_nothing_lost_nothing_drawn() -> None:
    assert timeline.svg(None) == ""


def test_the_bench_shows_its_goals_and_draws_how_cost_grows(tmp_path: Path) -> None:
    growth = [
        {
            "measure": "growth",
            "along": "callers",
            "strategy": SCRIPT,
            "callers": n,
            "accounts": 1,
            "per_s": 10.0 * n,
        }
        for n in (1, 2)
    ]
    goals = [
        {"name": "one", "goal": "≥ 2", "measured": 1.5, "met": False},
        {"name": "two", "goal": "≥ 2", "measured": None, "met": False, "reason": "left out"},
    ]
    bench = {
        "environment": {},
        "results": growth,
        "goals": goals,
        "notes": {"strategies": ["a busy machine"]},
    }
    (tmp_path / "bench.json").write_text(json.dumps(bench))
    text = page(tmp_path)
    said = (
        "missed",
        "not measured: left out",
        "a busy machine",
        "Postings a second over the number of callers",
    )
    assert [word for word in said if word not in text] == []
    assert SCRIPT not in text


@pytest.mark.parametrize("most", [0, 0.4, 1, 9.9, 11, 98, 313, 1_034_917, 3_224_490])
def test_an_axis_names_round_values_up_to_the_largest(most: float) -> None:
    found = charts.ticks(most)
    assert found[0] == 0
    assert found == sorted(found)
    assert found[-1] <= most * 1.001
    assert most == 0 or (3 <= len(found) <= 6 and most - found[-1] < found[1])


@pytest.mark.parametrize("most", [1, 9.9, 98, 3_000_000, 999_999])
def test_a_narrow_axis_has_few_and_short_labels(most: float) -> None:
    found = charts.ticks(most, parts=3)
    assert 2 <= len(found) <= 4
    assert max(len(rounded(each)) for each in found) <= 6
    drawing = bars([Bar("no-lock", most, True)], "Lost", ("keeps", "loses"))
    assert ",000" not in drawing


def test_round_values_are_short() -> None:
    values = (0, 500, 2_000, 20_000, 1_500_000, -3_000_000, 2 * 10**9)
    assert [rounded(each) for each in values] == ["0", "500", "2,000", "20 k", "1.5 M", "-3 M", "2 G"]


def test_the_axis_of_a_chart_has_more_than_zero() -> None:
    row = {
        "strategy": "no-lock",
        "expected": 3_224_490,
        "final": 241_689,
        "lost_amount": 1,
        "ops_per_s": 312.7,
    }
    assert "2,000,000" in charts.final_against_expected([row])
    assert "200/s" in charts.throughput([row])


def test_many_rows_leave_no_blank_band() -> None:
    rows = [
        {"strategy": f"s{number}", "expected": 10, "final": 10, "lost_amount": 0, "ops_per_s": 1.0}
        for number in range(70)
    ]
    for chart in (charts.final_against_expected, charts.throughput):
        drawn = [
            each
            for each in ET.fromstring(chart(rows)).iter()
            if str(each.get("class")).startswith("rect reactive")
        ]
        assert min(float(bar.get("y") or 0) for bar in drawn) < 24


def test_a_nought_beside_a_balance_below_nought_is_written_where_it_is_seen() -> None:
    """The axis is in the middle then: what stands on it in white is not seen."""
    rows = [
        {"strategy": slug, "expected": balance, "final": balance, "lost_amount": 0}
        for slug, balance in (("below", -8), ("nought", 0), ("above", 10))
    ]
    drawn = ET.fromstring(charts.final_against_expected(rows))
    values = [each for each in drawn.iter() if each.get("class") == "value" and each.text]
    assert {each.text: "fill" in each.get("style", "") for each in values} == {
        "-8": False,
        "0": True,
        "10": False,
    }
    assert {"-8", "-4", "0", "4"} <= {each.text for each in drawn.iter() if each.get("class") != "value"}


def test_a_cell_that_does_not_apply_is_told_from_one_that_was_not_run(tmp_path: Path) -> None:
    own = {"strategy": "token", "verdict": "not-run", "agrees": None, "claimed": False}
    cells = [
        {**own, "hazard": "replica-lag", "reason": "it has no replica"},
        {**own, "hazard": "partition", "reason": "no ZooKeeper", "remedy": "install it"},
    ]
    (tmp_path / "faults.json").write_text(json.dumps({"environment": {}, "results": cells}))
    html = page(tmp_path)
    assert html.count('<span class="unseen">not applicable</span>') == 1
    assert html.count('<span class="verdict not-run" title="no ZooKeeper">not-run</span>') == 1
