"""Which versions of a client library were tested with the gates? Has the installed one everything that they use?"""

from __future__ import annotations

import dis
import inspect
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import version as read_version
from typing import Any, NamedTuple

#: each exploration asks, and it is read from a file
version = cache(read_version)


class Names(NamedTuple):
    """Private names of one class, or of one function's arguments."""

    owner: Any
    names: tuple[str, ...]

    def missing(self) -> Iterator[str]:
        owner = self.owner
        where = getattr(owner, "__qualname__", str(owner))
        return (f"{where}.{name}" for name in _missing(owner, self.names, _sizes(owner)))


class Library(NamedTuple):
    """`tested`: the versions, by their first two numbers. `names`: everything private that the gates use of it."""

    distribution: str
    called: str
    tested: tuple[str, ...]
    names: Sequence[Names]

    def check(self) -> None:
        """Raise RuntimeError if the library has moved something that the gates use; warn of an untested version."""
        found = version(self.distribution)
        tested = f"the explorer's gates were tested with {self.called} {' and '.join(self.tested)}"
        missing = [name for names in self.names for name in names.missing()]
        if missing:
            raise RuntimeError(
                f"{self.called} {found} has no {', '.join(missing)}: {tested}. Install one of these"
            )
        if ".".join(found.split(".")[:2]) not in self.tested:
            warnings.warn(f"{self.called} {found} is untested: {tested}", RuntimeWarning, stacklevel=2)


def _sizes(owner: Any) -> tuple[int, ...]:
    """A name that is gone makes one of these smaller."""
    return tuple(len(vars(each)) for each in getattr(owner, "__mro__", (owner,)))


@cache  # each exploration asks
def _missing(owner: Any, names: Sequence[str], sizes: tuple[int, ...]) -> list[str]:
    """The names that a function has no argument for; or that a class, or module, does not have and none of its methods
    sets, so that no instance has them either."""
    known = owner.__code__.co_varnames if hasattr(owner, "__code__") else dir(owner)
    rest = [name for name in names if name not in known]
    for member in (member for each in getattr(owner, "__mro__", ()) for member in vars(each).values()):
        # redis-py decorates what makes a connection
        plain = inspect.unwrap(getattr(member, "__func__", member))
        code = getattr(plain, "__code__", None)
        # to disassemble all of them takes longer than many an exploration
        if code and set(rest).intersection(code.co_names):
            found = {step.argval for step in dis.get_instructions(code) if step.opname == "STORE_ATTR"}
            rest = [name for name in rest if name not in found]
    return rest
