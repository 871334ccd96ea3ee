"""The times of a strategy's lock, scaled down so that a cell takes seconds."""

from __future__ import annotations

from loadtest.trials.dependencies import factory_of, parameters


def lease_of(strategy: str) -> float:
    """Return the scaled lease in seconds. It is short, but whole if the lock only counts whole seconds."""
    lock = factory_of(strategy)
    if (getattr(lock, "lease_step", None) or 0) >= 1:
        return 2.0
    return 1.0 if getattr(lock, "renews", False) else 0.5  # the watchdog checks every 0.3 s


def scaled(strategy: str, lease: float) -> dict[str, float]:
    """Return the lock's other times in seconds, in the published proportion to its lease. A wait for replicas is at
    most 1 s."""
    defaults = {name: each.default for name, each in parameters(strategy).items()}
    published = {name: value for name, value in defaults.items() if isinstance(value, float)}
    times: dict[str, float] = {}
    if "lease" in published:
        share = min(1.0, lease / published["lease"])
        times = {name: published[name] * share for name in ("look", "below") if name in published}
    if "confirm" in published:
        times["confirm"] = min(1.0, published["confirm"])
    return times
