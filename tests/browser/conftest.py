"""A real browser on the real server: Debian's chromium, gunicorn."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, StorageState, sync_playwright

from loadtest.servers.webserver import WebServer

#: accessibility problems of the page that runs it
AUDIT = Path(__file__).with_name("audit.js").read_text(encoding="utf-8")
CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PASSWORD = "correct horse battery staple"  # pragma: allowlist secret


@pytest.fixture(scope="module")  # playwright's loop in this thread forbids Django's ORM as long as it lives
def lab(django_db_setup: None, django_db_blocker: Any) -> Iterator[tuple[str, str]]:
    """The running lab: (address, name of a superuser)."""
    if CHROMIUM is None:
        pytest.skip("no chromium: apt-get install chromium")
    name = f"browser-{uuid.uuid4()}"
    with django_db_blocker.unblock():
        User.objects.create_superuser(name, password=PASSWORD)
    with WebServer(workers=2, threads=8) as web:
        yield web.url, name


@pytest.fixture(scope="module")  # playwright's loop in this thread forbids Django's ORM as long as it lives
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
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


@contextmanager
def watched(chromium: Browser, address: str, **options: Any) -> Iterator[Page]:
    """A page of a fresh context. At the end: nothing was blocked, nothing failed, no other host was asked."""
    complaints: list[str] = []
    context = chromium.new_context(base_url=address, viewport={"width": 1400, "height": 900}, **options)
    tab = context.new_page()
    tab.set_default_timeout(20_000)
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
