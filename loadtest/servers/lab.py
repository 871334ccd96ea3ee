"""The files in `.lab/` through which the users of the embedded servers and their keeper communicate."""

import fcntl
import json
import os
from pathlib import Path
from typing import IO, Any

from ledger.addresses import birth, lab_dir, live_state, read_state


class Lab:
    """The folder: `LAB_DIR`, or `.lab` in the checkout.

    servers.json        the servers' addresses, while they run. ledger/addresses.py reads it
    users.lock          each user holds it shared; the keeper holds it exclusively while it stops the servers
    keeper.lock         the keeper holds it while it lives. It contains the keeper's process id
    orders/NAME         a user wants this server
    orders/NAME.failed  why it could not be started
    orders/pinned       the servers stay when the last user has left (`servers up`)
    """

    def __init__(self) -> None:
        self.folder = lab_dir().absolute()
        self.orders = self.folder / "orders"
        self.orders.mkdir(parents=True, exist_ok=True)
        self.state = self.folder / "servers.json"
        self.users = self.folder / "users.lock"
        self.keeper = self.folder / "keeper.lock"
        self.pin = self.orders / "pinned"

    def order(self, name: str) -> Path:
        return self.orders / name

    def failed(self, name: str) -> Path:
        return self.orders / f"{name}.failed"

    def refuse(self, name: str, reason: str) -> None:
        """Remove an order that could not be met, and leave the reason."""
        self.failed(name).write_text(reason)
        self.order(name).unlink(missing_ok=True)

    def clear_orders(self) -> None:
        for path in self.orders.iterdir():
            path.unlink(missing_ok=True)

    def read_state(self) -> dict[str, Any]:
        return read_state(self.state)

    def live_state(self) -> dict[str, Any]:
        """Return the state, or nothing if the keeper that wrote it is gone.

        The keeper's lock does not tell: a new keeper holds it before it removes the old one's state.
        """
        return live_state(self.state)

    def write_state(self, state: dict[str, Any]) -> None:
        new = self.state.with_suffix(".new")
        new.touch(mode=0o600)
        new.write_text(json.dumps(state, indent=1))
        new.replace(self.state)

    def keeper_lives(self) -> bool:
        return not _free(self.keeper, fcntl.LOCK_SH)

    def sign(self, lock: IO[str]) -> None:
        """Write the keeper's process id into the lock that it has just taken. It has written no state yet."""
        lock.truncate(0)
        lock.write(f"{os.getpid()} {birth(os.getpid())}")
        lock.flush()

    def keeper_pid(self) -> int | None:
        """Return the living keeper's process id. None: there is no keeper, or it has not signed yet."""
        if not self.keeper_lives():
            return None
        pid, _, born = self.keeper.read_text().partition(" ")
        return int(pid) if born and birth(int(pid)) == born else None

    def in_use(self) -> bool:
        """Return whether a user holds the servers. A keeper that stops them is no user."""
        return not _free(self.users, fcntl.LOCK_EX) and _free(self.users, fcntl.LOCK_SH)


def _free(path: Path, kind: int) -> bool:
    with path.open("a") as file:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
