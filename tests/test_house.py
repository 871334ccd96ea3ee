"""The house rules, as a test: short files, short functions, pages with the parts that a reader looks for.

Lengths are those of the code. A function's docstring does not count, so that it can list the arguments. Files of tests
may be longer: a table of cases is read from one end to the other, and half of it in another file is not found.
"""

from __future__ import annotations

import ast
import hashlib
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from ledger.strategies import STRATEGIES, Locked
from locks import LOCKS
from tests.conftest import LONGEST
from tests.test_floors import PACKAGES, parsed

ROOT = Path(__file__).resolve().parent.parent
LONGEST_FILE, LONGEST_FUNCTION = 400, 45
PARTS = ("Guarantees", "Breaks when", "Costs", "Source")
PART = f"^({'|'.join(PARTS)})\\b"


def tracked(*patterns: str) -> list[Path]:
    """Files of the project: those that git knows, else (in an unpacked archive) all of them."""
    listed = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=False
    )
    names = listed.stdout.split() or [
        str(p.relative_to(ROOT)) for x in patterns or "*" for p in ROOT.rglob(x)
    ]
    return [path for name in names if (path := ROOT / name).is_file() and ".venv" not in path.parts]


def sources() -> list[Path]:
    return [path for path in tracked("*.py") if "migrations" not in path.parts]


def too_long(text: str) -> Iterator[str]:
    """Say which rules about length a source breaks. A function's docstring does not count."""
    lines = text.count("\n")
    if lines > LONGEST_FILE:
        yield f"{lines} lines"
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            told = node.body[0] if ast.get_docstring(node) else None
            length = (node.end_lineno or 0) - node.lineno + 1
            length -= (told.end_lineno or 0) - told.lineno + 1 if told else 0
            if length > LONGEST_FUNCTION:
                yield f"{node.name} has {length} lines"


def test_files_and_functions_are_short() -> None:
    broken = [
        f"{path.relative_to(ROOT)}: {what}"
        for path in sources()
        if "tests" not in path.relative_to(ROOT).parts
        for what in too_long(path.read_text())
    ]
    assert not broken, "\n".join(broken)


def test_length_is_seen() -> None:
    assert list(too_long("x = 1\n" * (LONGEST_FILE + 1)))
    assert list(too_long("def f():\n" + "    x = 1\n" * (LONGEST_FUNCTION + 1)))
    told = '    """It' + "\n    goes on" * LONGEST_FUNCTION + '"""\n'
    assert not list(too_long(f"def f():\n{told}    x = 1\n"))


def test_nothing_is_called_utils() -> None:
    assert not [path for path in sources() if re.search(r"utils?|helpers?|misc|common", path.stem)]


#: each of these is a program of its own, or has the name that Django asks for
OF_THEIR_OWN = re.compile(r"museum/(cases|packages/package_\w+)\b|/management/commands/")
TWICE = {
    "Result": "the library's own, and the model whose name is in the database and in addresses of the admin"
}


def classes_named_twice(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """Name of a public class → the files that have such a class, where there are two."""
    found: dict[str, set[str]] = defaultdict(set)
    for file, text in sources.items():
        for node in parsed(text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].add(file)
    return {name: files for name, files in found.items() if len(files) > 1}


def imported_twice(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """Name → the files that define it, where others import it by itself (`from a import NAME`) from two of them."""
    by_module = {
        file.removesuffix(".py").removesuffix("/__init__").replace("/", "."): file for file in sources
    }
    taken: dict[str, set[str]] = defaultdict(set)
    for text in sources.values():
        for node in ast.walk(parsed(text)):
            if isinstance(node, ast.ImportFrom) and node.module in by_module:
                for name in (each.name for each in node.names if not each.asname):
                    taken[name].add(by_module[node.module])
    return {
        name: both
        for name in taken
        if len(both := {file for file in taken[name] if assigns(sources[file], name)}) > 1
    }


def assigns(text: str, name: str) -> bool:
    """Is it a constant (or an alias of a type) of this file? Then it is not only imported there."""
    nodes = [node for node in parsed(text).body if isinstance(node, ast.Assign | ast.AnnAssign)]
    targets = [
        each for node in nodes for each in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    return any(
        isinstance(each, ast.Name) and each.id == name for target in targets for each in ast.walk(target)
    )


@pytest.fixture(scope="module")
def packages() -> dict[str, str]:
    """The sources of the packages: file → text."""
    names = [str(path.relative_to(ROOT)) for path in sources()]
    ours = [name for name in names if name.split("/")[0] in PACKAGES and not OF_THEIR_OWN.search(name)]
    return {name: (ROOT / name).read_text() for name in ours}


def test_one_class_has_a_name(packages: dict[str, str]) -> None:
    assert {name: files for name, files in classes_named_twice(packages).items() if name not in TWICE} == {}
    assert classes_named_twice(packages).keys() == TWICE.keys()


def test_one_constant_has_a_name_that_others_import(packages: dict[str, str]) -> None:
    assert {name: files for name, files in imported_twice(packages).items() if name not in TWICE} == {}


def test_a_name_for_two_things_is_seen() -> None:
    both = {
        "locks/a.py": "class Line: ...\nclass _Mine: ...\nMOST, LEAST = 1, 1\n",
        "locks/b/__init__.py": "class Line: ...\nclass _Mine: ...\nMOST: int = 2\nLEAST = 2\n",
        "locks/c.py": "from locks.a import LEAST, MOST\nfrom locks.b import MOST as SOME\n",
    }
    assert classes_named_twice(both) == {"Line": {"locks/a.py", "locks/b/__init__.py"}}
    assert imported_twice(both) == {}
    both["locks/d.py"] = "from locks.b import MOST\n"
    assert imported_twice(both) == {"MOST": {"locks/a.py", "locks/b/__init__.py"}}


def test_every_module_says_what_it_is() -> None:
    silent = [
        path.relative_to(ROOT)
        for path in sources()
        if path.read_text().strip() and not ast.get_docstring(parsed(path.read_text()))
    ]
    assert not silent


@pytest.mark.parametrize("slug", LOCKS)
def test_a_lock_is_a_textbook_page(slug: str) -> None:
    page = __import__(LOCKS[slug].__module__, fromlist=["_"]).__doc__ or ""
    assert page.startswith(f"{slug}")
    assert re.findall(PART, page, re.MULTILINE) == list(PARTS)


@pytest.mark.parametrize("slug", [slug for slug, s in STRATEGIES.items() if not issubclass(s, Locked)])
def test_a_strategy_is_a_textbook_page(slug: str) -> None:
    page = __import__(STRATEGIES[slug].__module__, fromlist=["_"]).__doc__ or ""
    assert page.startswith(f"{slug}")
    assert re.findall(PART, page, re.MULTILINE) == list(PARTS)


def test_lock_files_have_hashes_and_no_address() -> None:
    for path in (ROOT / "requirements").glob("*.txt"):
        text = path.read_text()
        assert "--hash=sha256:" in text
        assert "://" not in text
        assert "index-url" not in text


def test_no_secret_is_in_the_repository() -> None:
    """The plainest ones. What `make secrets` and pre-commit look for besides takes 20 s: CI does it."""
    pattern = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY|AKIA[0-9A-Z]{16}|ghp_[A-Za-z0-9]{36}")
    assert pattern.search("-----BEGIN " + "RSA PRIVATE KEY")
    found = [path for path in tracked() if pattern.search(path.read_text(errors="ignore"))]
    assert not found


def test_a_secret_is_seen_by_the_tool_of_pre_commit_and_ci(tmp_path: Path) -> None:
    assert re.search(r"^make .*\bsecrets\b", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    (tool,) = [hook["entry"] for hook in hooks if hook["id"] == "secrets"]
    lines = (
        "harmless = 1",
        "aws = 'AKIA" + "IOSFODNN7" + "ABCDEFG'",
        "pass" + "word = 'hunter2-and-more'",
        "url = 'postgresql://lab:" + "pa55w0rd@db/lab'",
        f"x = '{hashlib.sha256(b'x').hexdigest()}'",
    )
    (tmp_path / "it.py").write_text("\n".join(lines))
    done = subprocess.run([ROOT / tool, tmp_path / "it.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert [int(n) for n in re.findall(r"it\.py:(\d)", done.stdout)] == [2, 3, 4, 5]


def test_the_files_that_begin_first_are_there() -> None:
    assert [name for name in LONGEST if not (ROOT / "tests" / name).exists()] == []
