"""What the gates use of a client library privately: it stands in one adapter, is there, and its version was tested."""

from __future__ import annotations

import re
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
import redis.connection
import redis.utils

import lost_update_lab
from lost_update_lab.adapters import psycopg, pymysql, redis_py, versions
from lost_update_lab.adapters.versions import Library, Names

LIBRARIES = [psycopg.LIBRARY, redis_py.LIBRARY, pymysql.LIBRARY]
if find_spec("aiomysql"):
    from lost_update_lab.adapters import aiomysql

    LIBRARIES.append(aiomysql.LIBRARY)
PACKAGE = Path(lost_update_lab.__file__).parent


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.called)
@pytest.mark.filterwarnings("error")
def test_the_installed_version_is_tested_and_has_all_names(library: Library) -> None:
    library.check()
    assert version(library.distribution).startswith(library.tested)


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.called)
def test_a_private_that_moved_is_reported_with_the_tested_versions(library: Library) -> None:
    """The must-fail control: each class, and each function, with a name that it has not."""
    for owner, _ in library.names:
        moved = library._replace(names=[Names(owner, ("_gone",))])
        with pytest.raises(
            RuntimeError, match=rf"no .*_gone: .* tested with {library.called} {library.tested[0]}"
        ):
            moved.check()


def test_a_method_that_is_renamed_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(redis.connection.AbstractConnection, "connect_check_health")
    with pytest.raises(RuntimeError, match="connect_check_health"):
        redis_py.LIBRARY.check()


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.called)
def test_an_untested_version_is_reported_in_one_sentence(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "version", lambda _: "99.1.2")
    with pytest.warns(
        RuntimeWarning, match=rf"{library.called} 99\.1\.2 is untested: .* {library.tested[0]}"
    ):
        library.check()


def test_the_version_that_is_read_once_is_redis_pys_own() -> None:
    assert redis_py.own_version() == redis.utils.get_lib_version()


def named_elsewhere(private: str, text: str) -> bool:
    return bool(re.search(rf"[.\"']{private}\b", text))


def test_no_private_is_named_elsewhere() -> None:
    privates = {
        name for library in LIBRARIES for _, names in library.names for name in names if name[0] == "_"
    }
    files = [p for p in PACKAGE.rglob("*.py") if "adapters" not in p.parts]
    found = [(p.name, name) for p in files for name in privates if named_elsewhere(name, p.read_text())]
    assert found == []
    assert named_elsewhere("_sock", "connection._sock")
    assert named_elsewhere("_commit_gen", 'if name == "_commit_gen":')
