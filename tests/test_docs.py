"""What messages and pages point to exists: files, and the headings in them."""

from __future__ import annotations

import re
from pathlib import Path

from tests.test_house import ROOT, sources, tracked

NAMED = re.compile(r"(docs/[\w/.-]+?\.md)(?:, '([^']+)')?")
CODE = re.compile(r"```.*?```", re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")


def missing(text: str, root: Path = ROOT) -> list[str]:
    """The pages, and headings of pages, that `text` names and that do not exist."""
    found = []
    for page, heading in NAMED.findall(text):
        path = root / page
        if not path.is_file():
            found.append(page)
        elif heading and not re.search(rf"^#+ {re.escape(heading)}$", path.read_text(), re.MULTILINE):
            found.append(f"{page}, '{heading}'")
    return found


def test_sources_point_to_pages_that_exist() -> None:
    ours = [path for path in sources() if "tests" not in path.relative_to(ROOT).parts]
    assert {str(path): found for path in ours if (found := missing(path.read_text()))} == {}


def test_links_lead_somewhere() -> None:
    broken = [
        f"{path.relative_to(ROOT)}: {to}"
        for path in tracked("*.md")
        for to in LINK.findall(CODE.sub("", path.read_text()))
        if not (path.parent / to).exists()
    ]
    assert not broken


def test_a_page_that_is_not_there_is_seen() -> None:
    assert missing("read docs/nowhere.md") == ["docs/nowhere.md"]
    assert missing("read docs/explorer.md, 'No such heading'") == ["docs/explorer.md, 'No such heading'"]
    assert missing("read docs/explorer.md, 'Other clients'") == []
