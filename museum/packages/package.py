"""What a package on trial is. Its module imports the package in functions only: it lives in another environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class PackageTrial:
    """One question. `invariant` None: the outcome must be that of some serial order."""

    name: str
    workers: Sequence[Any]
    setup: Callable[[], Any]
    invariant: Any = None
    faults: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Package:
    """`pins`: what is installed. `apps`, `settings`: of a Django project that has only this package, none: no project.

    `trials`: called where the package is installed. `others`: what is known of other versions than the pinned one.
    """

    pins: Sequence[str]
    trials: Callable[[], Sequence[PackageTrial]]
    apps: Sequence[str] = ()
    settings: Callable[[], Mapping[str, Any]] = dict
    others: str = "the registry has no newer one"
