"""What messages and pages point to exists: files, and the headings in them."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

from ledger.addresses import ADDRESS_NAMES
from tests.test_house import ROOT, sources, tracked

NAMED = re.compile(r"(docs/[\w/.-]+?\.md)(?:, '([^']+)')?")
CODE = re.compile(r"```.*?```", re.DOTALL)
ANCHOR = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)#([^)\s]+)\)")
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")

#: a file of the project, as prose names it: `locks/token_lock.py`, `token_lock.py`, `tests/ledger/test_race*.py`
FILE = re.compile(r"(?<![\w/.*-])(?:\w[\w/.-]*/)?[\w*-]+\.(?:py|lua|toml)\b")
DECISION = re.compile(r"(?:docs/decisions/|decisions? )(\d{1,4})\b")
#: files that a reader writes
EXAMPLES = {"mylocks.py", "script.py", "voucher.py", "test_voucher.py"}

LONGEST_LINE = 100

REPLAY = re.compile(r"explore --replay ([\w:./-]+)")


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


def anchors(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    heads = re.findall(r"^#+ (.+)$", CODE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_links_to_headings_lead_somewhere() -> None:
    broken = [
        f"{path.relative_to(ROOT)}: {to}#{heading}"
        for path in tracked("*.md")
        for to, heading in ANCHOR.findall(CODE.sub("", path.read_text()))
        if heading not in anchors(path.parent / to if to else path)
    ]
    assert not broken


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, ahead = set(), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop().resolve()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        ahead += [page.parent / to for to in LINK.findall(CODE.sub("", page.read_text()))]
    pages = [path for path in tracked("*.md") if path.is_relative_to(ROOT / "docs")]
    assert {str(path) for path in pages if path.parent.name != "decisions"} <= {str(path) for path in reached}


def test_the_index_of_the_decisions_has_each_by_its_title() -> None:
    pages = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
    heads = [re.fullmatch(r"# (\d+)\. (.+)", page.read_text().splitlines()[0]) for page in pages]
    lines = [
        f"| [{head[1]}]({page.name}) | {head[2]} |" for page, head in zip(pages, heads, strict=True) if head
    ]
    index = (ROOT / "docs" / "decisions" / "README.md").read_text()
    assert re.findall(r"^\| \[.+$", index, re.MULTILINE) == lines
    assert len(lines) == len(pages)


def test_a_schedule_that_a_page_names_is_among_the_counterexamples() -> None:
    """A test executes those, and they are rewritten when a lock or the explorer changes: an older id is another
    schedule then, or none."""
    known = set(REPLAY.findall((ROOT / "docs" / "counterexamples.md").read_text()))
    named = {each for page in tracked("*.md") for each in REPLAY.findall(page.read_text())}
    assert known
    assert {each for each in named if ":" not in each} <= known  # a third-party lock is on none of our pages


#: where the service reads its environment
READS = ("ledger/settings.py", "ledger/addresses.py", "ledger/http/gunicorn.py", "loadtest/demo/*.py")
VARIABLE = re.compile(r"env\.\w+\(\"([A-Z_]+)\"|environ(?:\.get\(|\[)\"([A-Z_]+)\"")
#: set by programs for each other
INTERNAL = {"DJANGO_SETTINGS_MODULE", "METRICS_DIR", "PROMETHEUS_MULTIPROC_DIR"}


def test_the_table_of_settings_has_each_variable_that_the_service_reads() -> None:
    texts = [path.read_text() for pattern in READS for path in ROOT.glob(pattern)]
    read = {name for text in texts for pair in VARIABLE.findall(text) for name in pair if name} - INTERNAL
    page = (ROOT / "docs" / "operating.md").read_text()
    table = page.partition("\n## Settings\n")[2].partition("\n## ")[0]
    told = {
        name
        for row in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }
    assert told == read | set(ADDRESS_NAMES)


def test_a_page_that_is_not_there_is_seen() -> None:
    assert missing("read docs/nowhere.md") == ["docs/nowhere.md"]
    assert missing("read docs/explorer.md, 'No such heading'") == ["docs/explorer.md, 'No such heading'"]
    assert missing("read docs/explorer.md, 'Other clients'") == []


def unknown_files(text: str, known: set[str]) -> list[str]:
    """Files, and numbers of decisions, that `text` names and that the project does not have."""
    files = [
        name
        for name in FILE.findall(text)
        if name not in EXAMPLES
        and not any(fnmatch(each, name) or fnmatch(each, f"*/{name}") for each in known)
    ]
    decisions = {int(Path(each).name[:4]) for each in known if re.match(r"docs/decisions/\d{4}", each)}
    return files + [f"decision {number}" for number in DECISION.findall(text) if int(number) not in decisions]


def test_files_and_decisions_that_pages_and_sources_name_exist() -> None:
    known = {str(path.relative_to(ROOT)) for path in tracked()}
    known |= set(
        re.findall(r"^```python (\S+)$", (ROOT / "docs" / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    )
    told = [path for path in (*tracked("*.md"), *sources()) if "tests" not in path.relative_to(ROOT).parts]
    assert {str(path): gone for path in told if (gone := unknown_files(path.read_text(), known))} == {}


def test_a_file_that_is_gone_is_seen() -> None:
    known = {"locks/token_lock.py", "docs/decisions/0001-order-of-writes.md"}
    assert unknown_files("`locks/token_lock.py`, `token_lock.py`, `locks/tok*.py`, decision 1", known) == []
    assert unknown_files("(composed.py)", known) == ["composed.py"]
    assert unknown_files("`ledger/token_lock.py`", known) == ["ledger/token_lock.py"]
    assert unknown_files("docs/decisions/0002", known) == ["decision 0002"]


#: what a command prints: a test reads it back line by line
PRINTED = re.compile(r"^```text$.*?^```$", re.DOTALL | re.MULTILINE)


def long_lines(text: str) -> list[str]:
    """The lines that are too long. A row of a table, or a single word, cannot be wrapped, and may be longer."""
    return [
        line
        for line in PRINTED.sub("", text).splitlines()
        if len(line) > LONGEST_LINE and not line.startswith("|") and " " in line.strip()
    ]


def test_lines_of_pages_are_short() -> None:
    assert {str(path): lines for path in tracked("*.md") if (lines := long_lines(path.read_text()))} == {}


def test_a_long_line_is_seen() -> None:
    long = "x" * (LONGEST_LINE - 1) + " y"
    assert long_lines(f"{'x' * LONGEST_LINE}\n{long}") == [long]
    assert long_lines("x" * (LONGEST_LINE + 1)) == []
    assert long_lines(f"| {long} |") == []
    assert long_lines(f"<!-- it: begin -->\n{long}\n<!-- it: end -->") == [long]
    assert long_lines(f"```text\n{long}\n```\n{long}") == [long]


#: what each shortcut of docs/soundness.md says
PARTS = ["Assumes", "Fails if wrong", "Without it"]


def unfounded(text: str, asked: list[str] = PARTS) -> list[str]:
    """The shortcuts that do not say what they assume, which test guards that, and what a search costs without them."""
    found = []
    for entry in re.split(r"^- ", text, flags=re.MULTILINE)[1:]:
        parts = dict(re.findall(r"^  - ([\w ]+): (.+?)(?=^  - |^\S|\Z)", entry, re.MULTILINE | re.DOTALL))
        tests = re.findall(r"`([\w/]*test_\w+\.py)`", parts.get("Fails if wrong", ""))
        there = tests and all((ROOT / "tests" / "lost_update_lab" / test).is_file() for test in tests)
        if entry.startswith("**") and not (list(parts) == asked and there):
            found.append(entry.partition("\n")[0])
    return found


def test_each_shortcut_has_a_test_and_a_figure() -> None:
    page = (ROOT / "docs" / "soundness.md").read_text()
    shortcuts = page.partition("\n## ")[2]  # before it stand the checks behind all of them
    shortcuts, _, rules = shortcuts.partition("\n## Rules\n")
    assert shortcuts.count("\n- **") > 30
    assert unfounded(shortcuts) == []
    assert rules.count("\n- **") > 5
    assert unfounded(rules, PARTS[:2]) == []


def test_a_shortcut_without_a_figure_is_seen() -> None:
    entry = "- **One.**\n  - Assumes: that.\n  - Fails if wrong: `test_search.py`.\n  - Without it: 2 → 3.\n"
    assert unfounded(entry) == []
    assert unfounded(entry.replace("  - Without it: 2 → 3.\n", "")) == ["**One.**"]
    assert unfounded(entry.replace("test_search", "test_nowhere")) == ["**One.**"]
