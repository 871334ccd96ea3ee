"""docs/museum.md agrees with its data, and the data with the cases that there are."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from museum import data, page, registry
from museum.packages import page as packages_page
from museum.packages import registry as packages_registry
from museum.table import within
from tests.contracts import lost


def read_packages() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(data.PACKAGES.read_text(encoding="utf-8"))["results"]
    return found


def test_the_page_says_what_the_data_say() -> None:
    assert page.with_data(text := page.FILE.read_text(), data.read()) == text


def test_other_data_would_be_seen() -> None:
    found = data.read()
    found["results"][0]["broken"][0]["verdict"] = "kept"
    assert page.with_data(text := page.FILE.read_text(), found) != text


def test_the_data_have_every_field_that_was_promised() -> None:
    assert lost("museum.json", data.read()) == []


def test_one_of_a_fault_is_not_called_as_several() -> None:
    assert (
        within({"bounds": {"crashes": 1, "lost_replies": 1, "pauses": 2}})
        == "≤ 1 crash, ≤ 1 lost reply, ≤ 2 pauses"
    )
    assert within({"bounds": {}}) == "none"


def test_the_headings_of_the_page_skip_no_level() -> None:
    levels = [len(line.split()[0]) for line in page.FILE.read_text().splitlines() if line.startswith("#")]
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_every_case_is_on_the_page() -> None:
    assert [result["case"] for result in data.read()["results"]] == list(registry.modules())


def test_the_page_says_of_packages_what_the_data_say() -> None:
    assert packages_page.with_results(text := page.FILE.read_text(), read_packages()) == text


def test_every_package_is_on_the_page_and_pinned() -> None:
    tried = read_packages()
    assert [each["package"] for each in tried] == list(packages_registry.load())
    assert len(tried) >= 5
    assert all("==" in pin for each in tried for pin in each["pins"])


def test_what_is_not_decided_has_a_reason() -> None:
    trials = [trial for each in read_packages() for trial in each["trials"]]
    assert all(trial["cause"] for trial in trials if trial["verdict"] == "not decided")
