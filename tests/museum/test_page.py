"""docs/museum.md agrees with its data, and the data with the cases that there are."""

from __future__ import annotations

from museum import data, page, registry


def test_the_page_says_what_the_data_say() -> None:
    assert page.with_data(text := page.FILE.read_text(), data.read()) == text


def test_other_data_would_be_seen() -> None:
    found = data.read()
    found["results"][0]["broken"][0]["verdict"] = "kept"
    assert page.with_data(text := page.FILE.read_text(), found) != text


def test_every_case_is_on_the_page() -> None:
    assert [result["case"] for result in data.read()["results"]] == list(registry.modules())
