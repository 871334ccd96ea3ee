"""The import as a person does it: choose files, press the button, watch, find who overwrote whom."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from loadtest.servers.background import BackgroundWorker

LONG = 60_000  # ms; the machine may be busy


@pytest.fixture(scope="module", autouse=True)
def workers(lab: tuple[str, str]) -> Iterator[None]:
    """They do the imports."""
    with BackgroundWorker(number=1), BackgroundWorker(number=2):
        yield


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Two sellers who pay one account, and one bad line."""
    return written(tmp_path, lines=60)


def written(folder: Path, lines: int) -> list[Path]:
    paths = []
    for seller in ("acme", "bolt"):
        rows = [f"{seller},A0001,{n},{seller}-{n}" for n in range(1, lines + 1)]
        if seller == "bolt":
            rows.append(f"bolt,A0001,1.50,bolt-{lines + 1}")
        path = folder / f"{seller}.csv"
        path.write_text("\n".join(["seller,account,amount,reference", *rows]))
        paths.append(path)
    return paths


@pytest.mark.deep
def test_import_concurrently_and_see_who_overwrote_whom(page: Page, files: list[Path]) -> None:
    page.goto("/admin/")
    page.get_by_role("link", name="Import files").click()
    page.set_input_files("input[type=file]", files)
    expect(page.locator(".chosen li")).to_have_count(2)
    page.select_option("#id_strategy", "no-lock")
    page.get_by_text("Settings of the new book").click()
    page.fill("#id_think", "20")
    page.get_by_role("button", name="Import concurrently").click()

    page.wait_for_url("**/importrun/*/change/")
    expect(page.locator(".batch")).to_have_count(3)  # two files and the scan
    expect(page.locator(".facts .word")).to_have_text("finished", timeout=LONG)  # htmx brings it, no reload
    expect(page.locator("#progress")).not_to_have_attribute("hx-get", re.compile("."))  # and stops polling
    row = page.locator("tr", has_text="bolt.csv")
    expect(row).to_contain_text("62")
    expect(row).to_contain_text("12.50 is 1250")
    outcome = page.locator("section", has=page.get_by_role("heading", name="Outcome"))
    expect(outcome.locator(".word")).to_have_text("lost")

    outcome.get_by_role("link", name="who overwrote whom").first.click()
    expect(page.locator("svg.timeline")).to_be_visible()
    expect(page.locator("svg.timeline .gone")).to_contain_text("lost")
    expect(page.locator(".entry")).to_have_count(2)
    page.get_by_role("link", name="draw").last.click()
    expect(page.locator("svg.timeline")).to_be_visible()


def test_the_same_file_twice_is_reported_as_already_imported(page: Page, files: list[Path]) -> None:
    page.goto("/admin/ledger/importrun/add/")
    page.set_input_files("input[type=file]", [files[0], files[0]])
    page.select_option("#id_strategy", "select-for-update")
    page.get_by_role("button", name="Import concurrently").click()
    expect(page.locator(".facts .word")).to_have_text("finished", timeout=LONG)
    expect(page.locator(".batch.duplicate")).to_contain_text("nothing is posted")
    expect(page.locator("section", has_text="Outcome").locator(".word").last).to_have_text("nothing lost")


@pytest.mark.deep
def test_files_that_are_too_large_are_not_sent(page: Page, tmp_path: Path) -> None:
    """The server would cut the request off, with a line of bare text."""
    large = tmp_path / "large.csv"
    large.write_bytes(b"x" * 11_000_000)
    page.goto("/admin/ledger/importrun/add/")
    page.set_input_files("input[type=file]", large)
    expect(page.locator(".chosen .alert")).to_have_text(
        "11,000,000 bytes in all, the limit is 10,000,000 bytes: split the import"
    )
    page.get_by_role("button", name="Import concurrently").click()
    expect(page.locator("input[type=file]")).to_be_focused()
    page.get_by_role("button", name="Import the four sample files").click()  # instead of mine
    page.wait_for_url("**/importrun/*/change/")


@pytest.mark.deep
def test_compare_repeats_the_files_under_each_chosen_strategy(page: Page, tmp_path: Path) -> None:
    """Long enough that the files meet even if one lane is woken by the sweeper only, 3 s late."""
    page.goto("/admin/loadtest/trial/compare/")
    page.set_input_files("input[type=file]", written(tmp_path, lines=180))
    for slug in ("naive-lock", "setnx", "watchdog", "optimistic-version"):
        page.uncheck(f"input[value={slug}]")
    page.fill("#id_think", "20")
    page.get_by_role("button", name="Compare strategies").click()
    page.wait_for_url("**/trial/*/change/")
    expect(page.locator("#results > header .word")).to_have_text("finished", timeout=2 * LONG)
    verdicts = page.locator("#results td .word")
    causes = page.locator("#results").inner_text()
    assert verdicts.all_inner_texts() == ["lost", "kept"], causes


@pytest.mark.deep
def test_the_admins_own_controls_work_under_the_policy(page: Page) -> None:
    """Alpine runs as its CSP build: the menus of the user and of the theme, the sidebar, the filters."""
    page.goto("/admin/ledger/importrun/")
    menu = page.get_by_text("Log out")
    expect(menu).to_be_hidden()
    page.locator("[x-on\\:click='openUserLinks = !openUserLinks']").click()
    expect(menu).to_be_visible()
    page.keyboard.press("Escape")
    sidebar = page.locator("#nav-sidebar")
    expect(sidebar).to_be_visible()
    page.locator("span.material-symbols-outlined", has_text="dock_to_right").first.click()
    expect(sidebar).to_be_hidden()
    page.reload()
    expect(sidebar).to_be_hidden()
    page.get_by_text("Filters").first.click()
    expect(page.get_by_role("heading", name="By strategy")).to_be_visible()


@pytest.mark.deep
def test_a_violation_would_be_seen(page: Page) -> None:
    """The must-fail control of the fixture that listens."""
    page.goto("/admin/password_change/")
    page.evaluate("document.body.setAttribute('style', 'color: red')")
    page.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: '1'}))")
    page.evaluate("fetch('http://127.0.0.2:9/').catch(() => 0)")
    seen = " ".join(page.complaints)  # type: ignore[attr-defined]
    page.complaints.clear()  # type: ignore[attr-defined]
    assert "inline style" in seen
    assert "inline script" in seen
    assert "127.0.0.2" in seen
