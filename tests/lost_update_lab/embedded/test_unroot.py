"""Root can run PostgreSQL too, also from folders that only root may enter."""

import os
import shutil
import subprocess
import sys

import pytest

from loadtest.servers import Postgres
from lost_update_lab.embedded import postgres, unroot

# what initdb does first: it asks access(2) whether it may read and run the program beside it
ASK = "import os, sys; sys.exit(os.geteuid() == 0 or not os.access(sys.argv[1], os.R_OK | os.X_OK))"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has to leave root")


def way_or_skip(way: str) -> str:
    if reason := unroot.probe(unroot.WAYS[way]):
        pytest.skip(f"{way} does not work here: {reason}")
    return way


def run_as(way: str, *command: str) -> str:
    line = [sys.executable, "-I", "-S", unroot.__file__, way, *command]
    return subprocess.run(line, check=True, capture_output=True, text=True).stdout.strip()


@needs_root
@pytest.mark.parametrize(("way", "uid"), [("nobody", "65534"), ("namespace", "1000")])
def test_it_is_not_root_and_still_enters_the_folders_of_root(way, uid, tmp_path):
    way_or_skip(way)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "file").write_text("inside")
    assert run_as(way, "/usr/bin/id", "-u") == uid
    assert run_as(way, "/bin/cat", str(closed / "file")) == "inside"


@needs_root
@pytest.mark.parametrize("way", unroot.WAYS)
def test_a_program_below_a_private_folder_may_be_asked_for_and_run(way, tmp_path):
    way_or_skip(way)
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    program = private / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    command = [sys.executable, "-I", "-S", unroot.__file__, way, sys.executable, "-c", ASK, str(program)]
    assert subprocess.run(command, check=False).returncode == 0
    program.chmod(0o644)  # `nobody` may not run what has no x
    assert subprocess.run(command, check=False).returncode == 1


@needs_root
def test_the_user_nobody_alone_could_not_enter(tmp_path):
    """The control: the folder is really closed to a user without the capability."""
    (tmp_path / "file").write_text("inside")
    tmp_path.chmod(0o700)
    done = subprocess.run(
        ["/bin/cat", tmp_path / "file"], user=unroot.NOBODY, capture_output=True, check=False
    )
    assert done.returncode != 0


@needs_root
@pytest.mark.parametrize("way", unroot.WAYS)
def test_postgres_runs_each_way_and_may_change_it(way, tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    with Postgres(tmp_path / "data") as server, server.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 42 AS n")
    monkeypatch.setattr(postgres, "_way_out_of_root", lambda: way_or_skip(way))
    with Postgres(tmp_path / "data") as server, server.connect() as connection:
        assert connection.execute("SELECT n FROM t").fetchone() == (42,)


@needs_root
def test_where_only_one_user_exists_the_namespace_is_chosen():
    """A rootless container: root is the only user id, so there is no other one to become."""
    if not shutil.which("unshare"):
        pytest.skip("install util-linux")
    way_or_skip("namespace")
    folder = os.path.dirname(unroot.__file__)
    code = f"import sys; sys.path.insert(0, {folder!r}); import unroot; print(unroot.choose())"
    inside = subprocess.run(
        ["unshare", "--user", "--map-root-user", sys.executable, "-I", "-S", "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    assert inside.stdout.strip() == "namespace"


def test_a_way_that_this_system_does_not_know_is_no_way():
    """Also an error that is no OSError, as that of a C library without the call."""
    folder = os.path.dirname(unroot.__file__)
    way = "lambda libc: libc.no_such_call()"
    code = f"import sys; sys.path.insert(0, {folder!r}); import unroot; print(unroot.probe({way}))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    assert "no_such_call" in done.stdout
    assert not done.stderr  # the forked child has not gone on as a second one of us


def test_if_no_way_works_the_error_names_the_reasons(monkeypatch):
    def fails(libc):
        raise OSError("not here")

    monkeypatch.setattr(unroot, "WAYS", {"nobody": fails, "namespace": fails})
    with pytest.raises(OSError, match=r"cannot leave root: .*not here.*Run as a normal user"):
        unroot.choose()
