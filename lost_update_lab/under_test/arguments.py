"""What explore() was given: each argument is of its kind, or one sentence says what to write instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import Any

from lost_update_lab.under_test.ignored import names_of
from lost_update_lab.under_test.scenario import Mistake


def check_setup(setup: object, remedy: str) -> None:
    """Raises Mistake."""
    if not callable(setup):
        called = " (the result of calling it?)" * (setup is None)
        raise Mistake(f"the setup is no callable, but {type(setup).__name__}{called}: {remedy}")


def checked(
    given: Mapping[str, Any], refusals: Any, *setups: Any, ignore: Any, **switches: object
) -> dict[str, Any]:
    """`given`, the refusals, the setups (None: no setup) and what to `ignore`, as fields of a Scenario. `switches`: as
    those in `given`. Raises Mistake."""
    named = tuple(each for each in setups if each is not None)
    for each in named:
        check_setup(each, "give the function itself, setup=one_voucher, or setup=lambda: one_voucher('XMAS')")
    switches |= {word: given[word] for word in ("control", "deadlocks", "mutate")}
    for word, value in switches.items():
        if not isinstance(value, bool):
            raise Mistake(f"{word} is True or False, not {value!r}")
    _check_seconds(given)
    return {**given, "refusals": _refusals(refusals), "setups": named, "ignore": names_of(ignore)}


def _check_seconds(given: Mapping[str, Any]) -> None:
    for word, least in (("budget", "above 0"), ("slack", "0 or more")):
        seconds = given[word]
        known = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if not known or not 0 <= seconds < inf or (word == "budget" and not seconds):
            raise Mistake(f"{word} is a number of seconds, {least}, not {seconds!r}")


def _refusals(given: Any) -> tuple[type[BaseException], ...]:
    """One class of exceptions, or several. Raises Mistake."""
    several = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    for each in several:
        if not (isinstance(each, type) and issubclass(each, BaseException)):
            raise Mistake(
                "refusals are the exceptions by which an operation says that it did nothing: refusals=[TooLate], not "
                f"{each!r}"
            )
    return several
