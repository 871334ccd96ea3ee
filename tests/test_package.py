"""The wheel in a bare environment: one package, two dependencies, a command, a plugin; the examples run there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
#: beside what the wheel asks for
TESTING = ("pytest", "pytest-django", "pytest-timeout", "fastapi", "httpx")

EXAMPLES = sorted(path.name for path in (ROOT / "examples").iterdir() if path.is_dir())
#: of each example some tests, one broken and one mended, for `make test`; all of them: `make test-deep`
QUICK = {
    "daily_job": "record_first",
    "django_wallet": "voucher_is_redeemed",
    "queue_psycopg": "job or skips",
    "shop_sqlalchemy": "sold_twice or buy_locked",
}

#: what the environment of these tests says of its servers
OWN = (
    "DATABASE_URL",
    "REDIS_URL",
    "REDIS_NODES",
    "PYTHONPATH",
    "DJANGO_SETTINGS_MODULE",
    "PYTEST_XDIST_WORKER",
)


def started(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name not in (*OWN, "INITDB_TEMPLATE")}
    return subprocess.run(
        [*map(str, command)], cwd=cwd, env=clean, capture_output=True, text=True, check=False
    )


def run(*command: str | Path, cwd: Path) -> str:
    done = started(*command, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the sdist, which is built from the checkout."""
    folder = tmp_path_factory.mktemp("dist")
    source = folder / "source"
    shutil.copytree(
        ROOT / "lost_update_lab", source / "lost_update_lab", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, source, cwd=folder)
    assert list(folder.glob("*.tar.gz"))
    return next(folder.glob("*.whl"))


def needed(name: str, extras: frozenset[str] = frozenset()) -> Iterator[Distribution]:
    """The distribution, and all that it asks for."""
    found = distribution(name)
    yield found
    for text in found.requires or ():
        wanted = Requirement(text)
        if wanted.marker is None or any(wanted.marker.evaluate({"extra": extra}) for extra in extras or {""}):
            yield from needed(wanted.name, frozenset(wanted.extras))


def asked_for(wheel: Path, extra: str) -> list[Requirement]:
    with zipfile.ZipFile(wheel) as archive:
        name = next(each for each in archive.namelist() if each.endswith("METADATA"))
        text = archive.read(name).decode()
    wanted = [Requirement(line) for line in re.findall(r"^Requires-Dist: (.*)$", text, re.MULTILINE)]
    return [each for each in wanted if each.marker is None or each.marker.evaluate({"extra": extra})]


def environment(folder: Path, wheel: Path, *extras: str, more: tuple[str, ...] = ()) -> Path:
    """An environment that holds the wheel and, as links, just what it asks for. → its Python"""
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    python = folder / "bin" / "python"
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--no-deps",
        "--no-index",
        wheel,
        cwd=folder,
    )
    here, there = Path(sysconfig.get_path("purelib")), next(folder.glob("lib/python*/site-packages"))
    wanted = {each.name: each for extra in ("", *extras) for each in asked_for(wheel, extra)}
    for each in (*wanted.values(), *map(Requirement, more)):
        for found in needed(each.name, frozenset(each.extras)):
            for top in {Path(str(file)).parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
                if not (there / top).exists():
                    (there / top).symlink_to(here / top)
    return python


@pytest.mark.deep
def test_the_wheel_has_one_package_and_asks_for_two(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"lost_update_lab"}
    assert {each.name for each in asked_for(wheel, "")} == {"psycopg", "redis"}
    python = environment(tmp_path / "bare", wheel)
    others = "{'django', 'psutil', 'sqlalchemy', 'pytest'}"
    code = f"import lost_update_lab.command.main, sys; print(sorted({others} & set(sys.modules)))"
    assert run(python, "-c", code, cwd=tmp_path).strip() == "[]"
    (tmp_path / "trials.py").write_text(
        "def nothing(race):\n    race.worker('Ann', int)\n    race.worker('Bob', int)\n"
    )
    command = [python.parent / "lost-update-lab", "explore", "trials:nothing"]
    told = started(*command, cwd=tmp_path)
    assert told.returncode == 2
    assert "pip install 'lost-update-lab[servers]'" in told.stderr


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an environment with the wheel and all extras, outside of the checkout."""
    folder = tmp_path_factory.mktemp("everything") / "bare"
    return environment(folder, wheel, "servers", "django", "sqlalchemy", more=TESTING)


def tried(name: str, python: Path, tmp_path: Path, *some: str) -> str:
    """pytest finds the plugin by itself."""
    project = tmp_path / name
    shutil.copytree(ROOT / "examples" / name, project, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    return run(python, "-m", "pytest", "-q", "--timeout", "120", "-p", "no:cacheprovider", *some, cwd=project)


#: a project whose packages have the names of the lab's own
NAMESAKES = {
    "ledger/__init__.py": "OURS = 'ledger'\n",
    "locks.py": "OURS = 'locks'\n",
    "test_shop.py": """
import ledger
import locks

def count(redis):
    redis.incr(f"{ledger.OURS} {locks.OURS}")

def test_it(race):
    race.worker("Ann", count)
    race.worker("Bob", count)
    race.explore()
    assert ledger.__file__.startswith(locks.__file__.removesuffix("locks.py"))
""",
}


def beside_namesakes(python: Path, tmp_path: Path) -> str:
    for name, text in NAMESAKES.items():
        (tmp_path / "shop" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "shop" / name).write_text(text)
    return run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=tmp_path / "shop")


def test_the_examples_run_from_the_wheel(python: Path, tmp_path: Path) -> None:
    """In one test: pytest-xdist would build the wheel once in each of its processes. So the wheel is tried here, too,
    beside packages of a user's that are called `ledger` and `locks`."""
    assert "1 passed" in beside_namesakes(python, tmp_path)
    assert list(QUICK) == EXAMPLES
    for name, some in QUICK.items():
        assert "2 passed" in tried(name, python, tmp_path, "-k", some)


@pytest.mark.deep
@pytest.mark.parametrize("name", EXAMPLES)
def test_all_of_an_example_runs_from_the_wheel(name: str, python: Path, tmp_path: Path) -> None:
    assert "passed" in tried(name, python, tmp_path)
