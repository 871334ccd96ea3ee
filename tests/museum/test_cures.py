"""docs/cures.md: each line rests on a case that exists, and each case is a cure's."""

from __future__ import annotations

import re

from museum import data
from museum.data import ROOT

PAGE = (ROOT / "docs" / "cures.md").read_text()
NAMED = re.compile(r"\[([\w-]+)\]\(museum\.md#([\w-]+)\)")


def unknown(page: str) -> set[str]:
    return {name for pair in NAMED.findall(page) for name in pair} - {
        each["case"] for each in data.read()["results"]
    }


def test_every_line_names_a_case_that_exists() -> None:
    parts = re.split(r"^- |^## .*$", PAGE, flags=re.MULTILINE)[1:]
    lines = re.findall(r"^- .*(?:\n  .*)*", PAGE, re.MULTILINE)
    assert parts
    assert [line for line in lines if not NAMED.search(line)] == []
    assert unknown(PAGE) == set()


def test_every_case_is_on_the_page_and_under_its_cure() -> None:
    sections = dict(re.findall(r"^## (.+)\n((?:(?!^## ).*\n)*)", PAGE, re.MULTILINE))
    for each in data.read()["results"]:
        assert f"museum.md#{each['case']}" in sections[each["cure"]], each["case"]


def test_an_unknown_case_is_seen() -> None:
    assert unknown("[99-none](museum.md#99-none)") == {"99-none"}
