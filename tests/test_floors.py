"""Imports have no circle: no file imports what imports it, nor does a package; type-only imports count.

A package (below: a room) is what stands directly in `loadtest/` or in `lost_update_lab/`: a folder, or a file.
`ledger`, `locks` and `museum` are one each. Its depth (its floor) is one more than the greatest depth from which it
imports. There is one count over all five. `pytest -s tests/test_floors.py` prints it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("locks", "ledger", "lost_update_lab", "loadtest", "museum")
#: packages whose direct children are rooms of their own
OF_ROOMS = ("lost_update_lab", "loadtest")
MOST_FLOORS = 10

Graph = Mapping[str, Set[str]]


def module_of(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def parsed(text: str) -> ast.Module:
    """Several tests look at the same sources."""
    return ast.parse(text)


def imported(path: Path, module: str) -> Iterator[str]:
    """Every name that the file imports, wherever it does so: `a.b.c` also where c is no module, but in one."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(parsed(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{name.name}" for name in node.names)


def imports_of(root: Path, packages: Iterable[str] = PACKAGES) -> Graph:
    """Module → the modules of the house that it imports."""
    paths = {module_of(path, root): path for name in packages for path in (root / name).rglob("*.py")}
    graph: dict[str, set[str]] = {}
    for module, path in paths.items():
        found = set[str]()
        for name in imported(path, module):
            found.add(next((each for each in (name, name.rpartition(".")[0]) if each in paths), ""))
        graph[module] = found - {"", module}
    return graph


def leading_nowhere(root: Path, packages: Iterable[str] = PACKAGES) -> list[str]:
    """Imports from the house of what is in no file there. mypy takes them for packages without types."""
    paths = {module_of(path, root): path for name in packages for path in (root / name).rglob("*.py")}
    lost = []
    for module, path in paths.items():
        for name in imported(path, module):
            if (
                name.partition(".")[0] in packages
                and name not in paths
                and name.rpartition(".")[0] not in paths
            ):
                lost.append(f"{module} imports {name}")
    return lost


def room_of(module: str) -> str:
    """`loadtest.faults.worker` stands in `loadtest/faults`."""
    parts = module.split(".")
    return "/".join(parts[:2]) if parts[0] in OF_ROOMS else parts[0]


def between_rooms(graph: Graph) -> Graph:
    """Room → the rooms that its files import from. A package's own page (`loadtest/__init__`) stands in no room."""
    rooms: dict[str, set[str]] = {}
    for module, others in graph.items():
        if module not in OF_ROOMS:
            mine = rooms.setdefault(room_of(module), set())
            mine |= {room_of(other) for other in others if other not in OF_ROOMS} - {room_of(module)}
    return rooms


def circle(graph: Graph) -> list[str]:
    """Return the names of a circle, each importing the next; empty: there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as found:
        return list(reversed(found.args[1]))
    return []


def floors(rooms: Graph) -> dict[str, int]:
    """Room → its floor, the lowest is 1."""
    found: dict[str, int] = {}
    for room in TopologicalSorter(rooms).static_order():
        found[room] = 1 + max((found[other] for other in rooms.get(room, ())), default=0)
    return found


@pytest.fixture(scope="module")
def house() -> Graph:
    return imports_of(ROOT)


def test_no_circle_of_files(house: Graph) -> None:
    assert circle(house) == []


def test_every_import_from_the_house_leads_to_a_file() -> None:
    assert leading_nowhere(ROOT) == []


def test_an_import_that_leads_nowhere_is_seen(tmp_path: Path) -> None:
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks/__init__.py").write_text("from locks.gone import thing\nfrom locks import here\n")
    (tmp_path / "locks/here.py").write_text("")
    assert leading_nowhere(tmp_path, ["locks"]) == ["locks imports locks.gone.thing"]


def test_no_circle_of_rooms(house: Graph) -> None:
    assert circle(between_rooms(house)) == []


def test_few_floors(house: Graph) -> None:
    at = floors(between_rooms(house))
    for floor in range(max(at.values()), 0, -1):
        print(f"{floor:>3}  {', '.join(sorted(room for room in at if at[room] == floor))}")
    assert max(at.values()) <= MOST_FLOORS


@pytest.mark.parametrize(
    "line",
    [
        "from lost_update_lab.above import thing",
        "from lost_update_lab import above",
        "from . import above",
        "from .above import thing",
        "if TYPE_CHECKING:\n    from lost_update_lab.above import thing",
        "def late():\n    import lost_update_lab.above",
    ],
)
def test_a_circle_is_seen(tmp_path: Path, line: str) -> None:
    """The must-fail control, in each form in which an import can be written."""
    package = tmp_path / "lost_update_lab"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "above.py").write_text("from lost_update_lab import below\nthing = below\n")
    (package / "below.py").write_text("")
    assert circle(imports_of(tmp_path, ["lost_update_lab"])) == []
    (package / "below.py").write_text(f"{line}\n")
    graph = imports_of(tmp_path, ["lost_update_lab"])
    assert set(circle(graph)) == {"lost_update_lab.above", "lost_update_lab.below"}
    assert circle(between_rooms(graph))


def test_a_high_house_is_seen() -> None:
    rooms: Graph = {f"loadtest/{n}": {f"loadtest/{n - 1}"} if n else set() for n in range(MOST_FLOORS + 1)}
    assert max(floors(rooms).values()) == MOST_FLOORS + 1
