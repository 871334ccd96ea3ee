"""docs/api.md: its commands, one after the other, on the real web server; what it prints is what they print."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadtest.servers.webserver import WebServer

PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"
BLOCK = re.compile(r"```(bash|text)\n(.*?)```", re.DOTALL)
pytestmark = [
    pytest.mark.usefixtures("committed_db"),
    pytest.mark.skipif(not shutil.which("curl"), reason="install curl"),
]


@pytest.fixture(scope="module")
def web(django_db_setup: None) -> Iterator[WebServer]:
    with WebServer(workers=1, threads=2) as server:
        yield server


def outputs(page: str, web: WebServer) -> tuple[str, str]:
    """What the page's commands print, and what it says they print."""
    blocks = BLOCK.findall(page)
    script = "set -eu\n" + "".join(text for kind, text in blocks if kind == "bash")
    done = subprocess.run(
        ["bash", "-c", script],
        env={**os.environ, "LAB": web.url},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout, "".join(text for kind, text in blocks if kind == "text")


def matches(told: str, found: str) -> bool:
    return doctest.OutputChecker().check_output(told, found, doctest.ELLIPSIS)


def test_the_page_says_what_its_commands_print(web: WebServer) -> None:
    found, told = outputs(PAGE.read_text(), web)
    assert matches(told, found), found


def test_a_page_that_says_something_else_is_seen(web: WebServer) -> None:
    found, told = outputs(PAGE.read_text().replace('"balance_after": 1250', '"balance_after": 1251'), web)
    assert not matches(told, found)
