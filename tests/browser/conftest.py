"""A real browser on the real server: Debian's chromium, gunicorn. One of each for all tests of this folder, which run
in one process (tests/conftest.py)."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, StorageState, expect, sync_playwright

from loadtest.servers.webserver import WebServer

#: accessibility problems of the page that runs it, contrast included
AUDIT = Path(__file__).with_name("audit.js").read_text(encoding="utf-8")
#: axe-core without contrast, which takes most of its time and which audit.js measures
AXE = """axe.run({resultTypes: ["violations"], rules: {"color-contrast": {enabled: false}}}).then((found) =>
  found.violations.map((each) => `${each.id}: ${each.nodes[0].html.slice(0, 200)}`))"""
#: of a long table axe-core sees the first rows, as one template makes all of them
SHORTEN = """() => document.querySelectorAll("tbody tr:nth-child(n+12), #result_list tbody:nth-of-type(n+12)")
  .forEach((row) => row.remove())"""
PHONE, DARK_PHONE, WIDE, DARK_WIDE = (390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")
CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
# ms, as long as playwright waits for what is clicked. A busy machine took longer than its 5 s to load the front page
expect.set_options(timeout=30_000)
PASSWORD = "correct horse battery staple"  # pragma: allowlist secret


@contextmanager
def database(blocker: Any) -> Iterator[None]:
    """Allow the database. Django sees playwright's event loop in this thread and would refuse, but nothing runs in that
    loop meanwhile."""
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    try:
        with blocker.unblock():
            yield
    finally:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="package")
def lab(django_db_setup: None, django_db_blocker: Any) -> Iterator[tuple[str, str]]:
    """The running lab: (address, name of a superuser)."""
    if CHROMIUM is None:
        pytest.skip("no chromium: apt-get install chromium")
    name = f"browser-{uuid.uuid4()}"
    with database(django_db_blocker):
        User.objects.create_superuser(name, password=PASSWORD)
    with WebServer(workers=2, threads=8) as web:
        yield web.url, name


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def cookies(lab: tuple[str, str], chromium: Browser) -> StorageState:
    """Cookies of a user logged in by the form. Made once: each login costs seconds."""
    address, name = lab
    with watched(chromium, address) as tab:
        tab.goto("/admin/login/")
        tab.fill("#id_username", name)
        tab.fill("#id_password", PASSWORD)
        tab.click("button[type=submit]")
        tab.wait_for_url("**/admin/")
        return tab.context.storage_state()


@pytest.fixture
def page(lab: tuple[str, str], chromium: Browser, cookies: StorageState) -> Iterator[Page]:
    """An empty page of a logged-in user."""
    with watched(chromium, lab[0], storage_state=cookies) as tab:
        yield tab


def problems(tab: Page, *screens: tuple[int, str]) -> list[str]:
    """Return what audit.js and axe-core find on the open page, on each of the `screens` (width, colour scheme). It
    is not loaded again for each."""
    found = []

    def look(what: str, width: int, scheme: str) -> None:
        tab.set_viewport_size({"width": width, "height": 844})
        tab.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        theme = "html.dark, html:not([x-data])" if scheme == "dark" else "html:not(.dark)"
        expect(tab.locator(theme)).to_be_attached()  # the admin's theme is a class that a script sets
        found.extend(f"{width} {scheme}: {each}" for each in tab.evaluate(what))

    for screen in screens:
        look(AUDIT, *screen)
    tab.evaluate(SHORTEN)
    tab.evaluate(AXE_SCRIPT)
    for screen in reversed(screens):
        look(AXE, *screen)
    return found


@contextmanager
def watched(chromium: Browser, address: str, **options: Any) -> Iterator[Page]:
    """A page of a fresh context. At the end: nothing was blocked, nothing failed, no other host was asked."""
    complaints: list[str] = []
    context = chromium.new_context(base_url=address, viewport={"width": 1400, "height": 900}, **options)
    tab = context.new_page()
    tab.on(
        "console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None
    )
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on(
        "request", lambda request: complaints.append(request.url) if foreign(request.url, address) else None
    )
    tab.complaints = complaints  # type: ignore[attr-defined]
    yield tab
    context.close()
    assert complaints == []


def foreign(url: str, address: str) -> bool:
    return not url.startswith((address, "data:"))
