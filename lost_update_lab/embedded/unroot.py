"""When root is the caller, run a program that refuses to run as root: postgres or initdb.

    python -I -S unroot.py WAY PROGRAM ARGUMENTS...

There are two ways, and `choose` names the first that works:

nobody      Another user id that keeps the right to reach all files (CAP_DAC_OVERRIDE as an ambient capability). So a
            checkout or a virtual environment below a folder of mode 0700 is no obstacle. Needs CAP_SETUID, which root
            has in a container too.
namespace   A user namespace in which root is called 1000. Works where only one user id exists (rootless containers).

Both replace this process by the program, which keeps the process id. Standard library only: it runs without site.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable

NOBODY = 65534
CAP_DAC_OVERRIDE = 1
PR_SET_KEEPCAPS, PR_SET_SECUREBITS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 8, 28, 47, 2
SECBIT_NO_SETUID_FIXUP = 1 << 2
CLONE_NEWUSER = 0x10000000
CAPABILITY_VERSION_3 = 0x20080522


class CapHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class CapData(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("effective", "permitted", "inheritable")]


def _check(result: int, call: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{call}: {os.strerror(ctypes.get_errno())}")


def as_nobody(libc: ctypes.CDLL) -> None:
    # Group and capabilities come first: after the change of user it is too late for both. The calls name all three
    # ids, so that the saved one does not stay 0.
    _check(libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0), "prctl(PR_SET_KEEPCAPS)")
    # Unless this bit is set, access(2) ignores the capabilities of a user who is not root. initdb looks for its own
    # path with access(2).
    _check(libc.prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0), "prctl(PR_SET_SECUREBITS)")
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    bit = 1 << CAP_DAC_OVERRIDE
    data = (CapData * 2)(CapData(bit, bit, bit), CapData(0, 0, 0))
    _check(libc.capset(ctypes.byref(CapHeader(CAPABILITY_VERSION_3, 0)), data), "capset(CAP_DAC_OVERRIDE)")
    _check(libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE, 0, 0), "prctl(PR_CAP_AMBIENT)")


def in_user_namespace(libc: ctypes.CDLL) -> None:
    uid, gid = os.geteuid(), os.getegid()
    _check(libc.unshare(CLONE_NEWUSER), "unshare(CLONE_NEWUSER)")
    for name, text in (("setgroups", "deny"), ("uid_map", f"1000 {uid} 1"), ("gid_map", f"1000 {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def probe(way: Callable[[ctypes.CDLL], None]) -> str | None:
    """Try the way in a forked child, since half a change of user cannot be undone. Return why it fails, or None."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            way(ctypes.CDLL(None, use_errno=True))
        except BaseException as error:  # noqa: BLE001  the child must not go on as its parent would
            os.write(writing, f"{error}".encode() or b"failed")
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as file:
        return file.read() or None


WAYS = {"nobody": as_nobody, "namespace": in_user_namespace}


def choose() -> str:
    """Return the name of the first way that works here. If none does, raise OSError with the reasons."""
    reasons = {}
    for name, way in WAYS.items():
        reasons[name] = probe(way)
        if reasons[name] is None:
            return name
    raise OSError(f"cannot leave root: {reasons}. Run as a normal user instead")


def main() -> None:
    way, *command = sys.argv[1:]
    WAYS[way](ctypes.CDLL(None, use_errno=True))
    os.execv(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main()
