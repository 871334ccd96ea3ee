"""The embedded servers of this checkout. The first user starts them, and they end with the last one.

    using()         for the time of a `with` block: `make demo`, `make serve`
    held()          the same, but it starts none: `manage.py compare`
    up() … down()   until a call of `down`: `python manage.py servers up`

Two runs side by side share the servers. A server that the environment names (`DATABASE_URL`, `REDIS_URL`, …) is not
started. The servers belong to a process of their own, the keeper (keeper.py). This file talks to it.
"""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

from ledger.addresses import BASE_DIR, addresses, lab_dir, live_state
from loadtest.servers.children import child_environment
from lost_update_lab.embedded.base import ServerError, Unavailable, tail

from .keeper import SERVERS, UNAVAILABLE
from .lab import Lab

STANDARD = ("postgres", "valkey", "valkey-nodes")
PATIENCE = 90.0  # seconds for a server to start: initdb on a slow disk, or ZooKeeper's Java
USED = (
    "Noted: a run (make demo, make serve, a comparison, a test) still uses the servers, and they end with it. "
    "`python manage.py servers down --force` ends them now."
)


class StillUsed(ServerError):
    """A run still uses the servers. They end with it."""


_keepers: list[
    subprocess.Popen[bytes]
] = []  # started by this process, which must wait for them when they end


def up(*extra: str) -> dict[str, str]:
    """Start the servers, with "mariadb" and "zookeeper" if named, and leave them running. Return their addresses.

    May be called twice. Raises Unavailable, which says what to install, or ServerError with the end of the log.
    """
    lab = Lab()
    with _held(lab):
        pinned_before = lab.pin.exists()
        lab.pin.touch()
        try:
            return _ensure(lab, extra)
        except BaseException:
            if not pinned_before:
                lab.pin.unlink(missing_ok=True)
            raise


def down(*, force: bool = False) -> None:
    """End the servers, if any run, and return when they have ended.

    Raises StillUsed if a run uses them: they then end with it. `force` ends them all the same. Raises ServerError if
    they do not end in time.
    """
    lab = Lab()
    lab.pin.unlink(missing_ok=True)
    if not force and lab.in_use():
        raise StillUsed(USED)
    _wait_for_the_end(lab, force=force)
    if lab.keeper_lives():
        again = not force and (lab.in_use() or lab.pin.exists())  # a user came after the look above
        slow = f"The servers have not ended within {PATIENCE:g} s. {tail(lab.folder / 'keeper.log')}"
        raise StillUsed(USED) if again else ServerError(slow)


def status() -> dict[str, Any]:
    """Return {"running", "stays", "used", "addresses": {name: url}, "pids": {name: pid}, "logs": {name: path}}."""
    lab = Lab()
    state = lab.live_state()
    return {
        "running": bool(state),
        "stays": lab.pin.exists(),
        "used": lab.in_use(),
        "addresses": {name: state[name] for name, _ in SERVERS.values() if name in state},
        "pids": {name: pid for name, (pid, _) in state.get("processes", {}).items()},
        "logs": state.get("logs", {}),
    }


def what_is_left() -> str:
    """Return the last sentence of a run that no longer uses the servers."""
    now = status()
    if not now["running"]:
        return "Nothing keeps running."
    why = "another run uses them" if now["used"] else "`python manage.py servers down` ends them"
    return f"The servers keep running: {why}."


@contextmanager
def held() -> Iterator[None]:
    """Be a user of the servers during the block, if they run. Start none. `down` is refused meanwhile."""
    with _held(Lab()) if live_state(lab_dir() / "servers.json") else nullcontext():
        yield


@contextmanager
def using(*extra: str) -> Iterator[dict[str, str]]:
    """Run the servers during the block, and give it their addresses. The last user to leave waits for their end."""
    lab = Lab()
    try:
        with _held(lab):
            yield _ensure(lab, extra)
    finally:
        _wait_for_the_end(lab)


def migrate() -> None:
    """Run Django's migrations in a process of its own, one at a time. Raises ServerError with its output."""
    lab = Lab()
    with (lab.folder / "migrate.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for database in ["default"] + ["mariadb"] * ("MARIADB_URL" in addresses()):
            done = subprocess.run(
                [
                    sys.executable,
                    "manage.py",
                    "migrate",
                    "--skip-checks",
                    "--verbosity=0",
                    f"--database={database}",
                ],
                check=False,
                cwd=BASE_DIR,
                env=child_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
            )
            if done.returncode != 0:
                raise ServerError(f"migrate failed on {database}:\n{done.stdout}{done.stderr}")


@contextmanager
def _held(lab: Lab) -> Iterator[None]:
    with lab.users.open("a") as users:
        fcntl.flock(users, fcntl.LOCK_SH)  # waits while a keeper stops its servers
        try:
            yield
        finally:
            fcntl.flock(users, fcntl.LOCK_UN)  # also for children that were forked with this file open


def _ensure(lab: Lab, extra: tuple[str, ...]) -> dict[str, str]:
    names = [name for name in (*STANDARD, *extra) if not _given(name)]
    for name in names:
        if reason := UNAVAILABLE.get(name, lambda: None)():
            raise Unavailable(f"{name}: {reason}")
        lab.failed(name).unlink(missing_ok=True)
    deadline, awaited = 0.0, len(names) + 1
    keeper = None
    while missing := [name for name in names if SERVERS[name][0] not in lab.live_state()]:
        if len(missing) < awaited:  # one has started: the next one has as long again
            deadline, awaited = time.monotonic() + PATIENCE, len(missing)
        for name in missing:
            if lab.failed(name).exists():
                raise ServerError(f"{name} could not be started: {lab.failed(name).read_text()}")
            lab.order(name).touch()
        if keeper is not None and keeper.poll() not in (None, 0):
            raise ServerError(f"The keeper of the servers failed. {tail(lab.folder / 'keeper.log')}")
        if (keeper is None or keeper.poll() is not None) and not lab.keeper_lives():
            keeper = _start_keeper(lab)
        if time.monotonic() > deadline:
            raise ServerError(
                f"No {', '.join(missing)} after {PATIENCE:g} s. {tail(lab.folder / 'keeper.log')}"
            )
        time.sleep(0.05)
    return addresses()


def _given(name: str) -> bool:
    """Return whether the environment names such a server. A Valkey from outside gets no embedded nodes beside it."""
    return bool(os.environ.get(SERVERS[name][0]) or (name == "valkey-nodes" and os.environ.get("REDIS_URL")))


def _start_keeper(lab: Lab) -> "subprocess.Popen[bytes]":
    with (lab.folder / "keeper.log").open("wb") as log:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "loadtest.servers.keeper"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=BASE_DIR,
            env={**os.environ, "LAB_DIR": str(lab.folder)},
            start_new_session=True,
        )
    _keepers.append(keeper)
    return keeper


def _wait_for_the_end(lab: Lab, *, force: bool = False) -> None:
    """Wait until the keeper is gone, another user has the servers, or they are to stay. `force`: tell it to end."""
    deadline = time.monotonic() + PATIENCE
    told = None
    while lab.keeper_lives() and time.monotonic() < deadline:
        if force and (pid := lab.keeper_pid()) not in (None, told):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            told = pid
        if not force and (lab.in_use() or lab.pin.exists()):
            return
        time.sleep(0.05)
    _keepers[:] = [keeper for keeper in _keepers if keeper.poll() is None]
