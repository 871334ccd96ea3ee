"""The errors that locks raise. Every message says what to do about it."""


class LockError(Exception):
    """Base of all errors of this library."""


class LockTimeout(LockError):
    """The lock was not granted within the wait time. The caller holds nothing."""


class LockLost(LockError):
    """The lock was held and no longer is: the lease ran out, or the server forgot it.

    Writes since then may race with the next holder's. Stop writing, re-read, start again.
    """


class LockNotHeld(LockError):
    """`release` or `extend` was called without holding the lock."""


class LockUnavailable(LockError):
    """The lock's server cannot be used now (connection lost, read-only replica, writes refused, too few nodes)."""


class LockUnsupported(LockError):
    """The server lacks a command that this lock needs (Lua, `SET … IFEQ`, WAIT), or the user may not run it."""
