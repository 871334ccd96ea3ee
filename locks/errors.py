"""What a lock can say when it does not simply work. Every error says what to do about it."""


class LockError(Exception):
    """Base of all errors of this library."""


class LockTimeout(LockError):
    """The lock was not granted within the wait time. The caller holds nothing."""


class LockLost(LockError):
    """The lock was held and is held no longer: the lease ran out, or the server forgot it.

    Whatever was written since then may race with the next holder: stop writing, re-read, start again.
    """


class LockNotHeld(LockError):
    """`release` or `extend` was called by one that does not hold the lock."""


class LockUnavailable(LockError):
    """The lock's server cannot be asked (connection lost, read-only replica, writes refused, too few nodes)."""


class LockUnsupported(LockError):
    """The server lacks a command that this lock needs (Lua, `SET … IFEQ`, WAIT), or its user may not run it."""
