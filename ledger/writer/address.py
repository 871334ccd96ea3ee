"""Where an owner listens: a socket file that only this user can open, or a TCP port for callers on other hosts.

unix:/tmp/ledger-1000/4711-9f3c2a10.sock      settings.OWNER_LISTEN is empty: all callers are on this host
tcp:172.18.0.5:40123                          OWNER_LISTEN names the interface (docker-compose.yml: 0.0.0.0)
"""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

import psutil
from django.conf import settings

BACKLOG = 512


def listen() -> tuple[socket.socket, str]:
    """Return a listening socket and its address."""
    if interface := settings.OWNER_LISTEN:
        listener = socket.create_server((interface, 0), backlog=BACKLOG)
        host, port = listener.getsockname()[:2]
        return listener, f"tcp:{_seen_from_outside(host)}:{port}"
    path = _private_folder() / f"{os.getpid()}-{token_hex(4)}.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    path.chmod(0o600)
    listener.listen(BACKLOG)
    return listener, f"unix:{path}"


def connect(address: str, timeout: float) -> socket.socket:
    """Return a connection to `address`. Raises OSError if no process listens there."""
    kind, _, place = address.partition(":")
    if kind == "tcp":
        host, _, port = place.rpartition(":")
        connection = socket.create_connection((host, int(port)), timeout)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(timeout)
    try:
        connection.connect(place)
    except OSError:
        connection.close()
        raise
    return connection


def remove(address: str) -> None:
    """Remove the socket's file. A port needs no clean-up."""
    kind, _, place = address.partition(":")
    if kind == "unix":
        Path(place).unlink(missing_ok=True)


def _seen_from_outside(host: str) -> str:
    """Return the host's own address for a socket that listens on every interface."""
    return socket.gethostbyname(socket.gethostname()) if host in ("0.0.0.0", "::") else host  # noqa: S104


def _private_folder() -> Path:
    """Return this user's folder, without the files of killed processes. Raises PermissionError if another user could
    open what is in it."""
    folder = Path(tempfile.gettempdir()) / f"ledger-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(f"{folder} must be a folder of this user alone (mode 0700): remove it")
    for file in folder.glob("*.sock"):
        pid = file.name.partition("-")[0]
        if not (pid.isdecimal() and psutil.pid_exists(int(pid))):
            with suppress(OSError):
                file.unlink(missing_ok=True)
    return folder
