"""What an invariant is given in place of a result that there is none of. It is false, as most results that say no are:
`not (a and b)` then says of a worker that failed, or crashed, what it says of one that was refused.
"""

from __future__ import annotations

from functools import cache
from typing import Any

#: what an error knows besides its arguments and attributes
_HISTORY = "__cause__", "__context__", "__suppress_context__", "__traceback__"


class Crashed(Exception):
    """Of a worker that a fault has ended, or that waits for ever."""

    def __bool__(self) -> bool:
        return False


def false_error(error: BaseException) -> BaseException:
    """The same error, of a class below its own. One that cannot be made so, or that has a truth of its own, is
    returned as it is."""
    kind: Any = type(error)
    if hasattr(kind, "__bool__") or hasattr(kind, "__len__"):
        return error
    try:
        made: BaseException = _false(kind).__new__(_false(kind), *error.args)
        vars(made).update(vars(error))
        for name in _HISTORY:
            setattr(made, name, getattr(error, name))
    except Exception:  # noqa: BLE001  (the user's class may ask for anything)
        return error
    return made if str(made) == str(error) else error


@cache
def _false(kind: type[BaseException]) -> Any:
    own = {"__bool__": lambda self: False, "__module__": kind.__module__, "__doc__": kind.__doc__}
    return type(kind.__name__, (kind,), {**own, "__qualname__": kind.__qualname__})
