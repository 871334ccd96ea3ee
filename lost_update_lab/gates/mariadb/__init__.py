"""The gates before PyMySQL and aiomysql, if they are installed."""

from __future__ import annotations

from importlib.util import find_spec

from lost_update_lab.gates.patch import Patches


def install(patches: Patches) -> None:
    if find_spec("pymysql"):
        from lost_update_lab.gates.mariadb import gate

        gate.install(patches)
    if find_spec("aiomysql"):
        from lost_update_lab.gates.mariadb import coroutines

        coroutines.install(patches)
