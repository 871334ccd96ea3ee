"""The files by which the users of the embedded servers and their keeper talk to each other, in `.lab/`."""

import fcntl
import json
import os
from pathlib import Path
from typing import IO, Any

from ledger.addresses import birth, lab_dir, live_state, read_state


class Lab:
    """One folder, `LAB_DIR` or `.lab` of the checkout.

    servers.json        where the servers are; there while they run. ledger/addresses.py reads it
    users.lock          shared lock: held by each user; exclusive: by the keeper while it stops the servers
    keeper.lock         held by the keeper as long as it lives; says who it is
    orders/NAME         a user wants this server
    orders/NAME.failed  why it could not be started
    orders/pinned       they stay when the last user has left (`servers up`)
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
        """The order could not be met: leave the reason and take the order away."""
        self.failed(name).write_text(reason)
        self.order(name).unlink(missing_ok=True)

    def clear_orders(self) -> None:
        for path in self.orders.iterdir():
            path.unlink(missing_ok=True)

    def read_state(self) -> dict[str, Any]:
        return read_state(self.state)

    def live_state(self) -> dict[str, Any]:
        """The same, but empty if the keeper that wrote it is gone.

        The keeper's lock would not do: a new keeper holds it before it has removed the old one's state.
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
        """The keeper that has taken its lock says who it is: it has written no state yet."""
        lock.truncate(0)
        lock.write(f"{os.getpid()} {birth(os.getpid())}")
        lock.flush()

    def keeper_pid(self) -> int | None:
        """Of the keeper that lives; None: there is none, or it has not said so yet."""
        if not self.keeper_lives():
            return None
        pid, _, born = self.keeper.read_text().partition(" ")
        return int(pid) if born and birth(int(pid)) == born else None

    def in_use(self) -> bool:
        """Whether some user holds the servers. The keeper that stops them is no user."""
        return not _free(self.users, fcntl.LOCK_EX) and _free(self.users, fcntl.LOCK_SH)


def _free(path: Path, kind: int) -> bool:
    with path.open("a") as file:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
