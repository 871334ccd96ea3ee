"""docs/museum.md agrees with its data, and the data with the cases that there are."""

from __future__ import annotations

from museum import data, page, registry
from museum.packages import page as packages_page
from museum.packages import registry as packages_registry
from tests.contracts import lost


def test_the_page_says_what_the_data_say() -> None:
    assert page.with_data(text := page.FILE.read_text(), data.read()) == text


def test_other_data_would_be_seen() -> None:
    found = data.read()
    found["results"][0]["broken"][0]["verdict"] = "kept"
    assert page.with_data(text := page.FILE.read_text(), found) != text


def test_the_data_have_every_field_that_was_promised() -> None:
    assert lost("museum.json", data.read()) == []


def test_every_case_is_on_the_page() -> None:
    assert [result["case"] for result in data.read()["results"]] == list(registry.modules())


def test_the_page_says_of_packages_what_the_data_say() -> None:
    assert packages_page.with_results(text := page.FILE.read_text(), data.read_packages()) == text


def test_every_package_is_on_the_page_and_pinned() -> None:
    tried = data.read_packages()
    assert [each["package"] for each in tried] == list(packages_registry.load())
    assert len(tried) >= 5
    assert all("==" in pin for each in tried for pin in each["pins"])


def test_what_is_not_decided_has_a_reason() -> None:
    trials = [trial for each in data.read_packages() for trial in each["trials"]]
    assert all(trial["cause"] for trial in trials if trial["verdict"] == "not decided")
