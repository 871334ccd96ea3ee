"""What a case is: forms of the same operations, broken ones and mended ones, and what each must come to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lost_update_lab.model.system import STALLED
from lost_update_lab.scenarios.result import KEPT
from lost_update_lab.under_test.operations import REFUSED, VIOLATED

__all__ = ["KEPT", "REFUSED", "STALLED", "VIOLATED", "Case", "Form"]


@dataclass(frozen=True, kw_only=True)
class Form:
    """One way to write the operations. `workers`: as `lost_update_lab.explore` takes them.

    `faults`: how many of which kind may happen (`{"crashes": 1}`). `needs`: the fault without which a broken form is
    kept, "": it breaks without any. `found_by_default`: also without the case's own invariant. `invariant`: instead of
    the case's. `refusals`: exceptions that say "nothing was done". `untimed`: why no threads can try it in real time.
    `mends`: the broken form whose work a mended one does, "": the first.
    """

    name: str
    workers: Sequence[Any]
    faults: Mapping[str, int] = field(default_factory=dict)
    verdict: str = KEPT
    needs: str = ""
    found_by_default: bool = True
    invariant: Any = None
    untimed: str = ""
    mends: str = ""
    refusals: Sequence[type[BaseException]] = ()


@dataclass(frozen=True, kw_only=True)
class Case:
    """`setup`: puts the opening state into the tables of the case's own models, which exist by then.

    `invariant`: what money demands, as `lost_update_lab.explore` takes it. `source`: where the story is public, as
    owner/repo#number, or a paper. `cure`: what the mended forms rest on.
    """

    setup: Callable[[], Any]
    invariant: Any
    broken: Sequence[Form]
    mended: Sequence[Form]
    source: str
    cure: str
