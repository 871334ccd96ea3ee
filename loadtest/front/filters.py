"""Which rows of the matrix a visitor wants to see. The address holds it, so it can be sent to somebody."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ledger.stores import STORES
from loadtest.front.evidence import StrategyRow
from loadtest.report.pages.kinds import GROUPS, UNPROTECTED
from locks.hazards import Hazard

#: what many ask at once
BOTH = "crash-pause"
WITHSTANDS: Mapping[str, tuple[Hazard, ...]] = {
    BOTH: (Hazard.CRASH, Hazard.PAUSE),
    **{str(hazard): (hazard,) for hazard in Hazard},
}


@dataclass(frozen=True)
class Filters:
    """ "": all of them."""

    kind: str = ""
    store: str = ""
    withstands: str = ""
    text: str = ""

    @classmethod
    def of(cls, asked: Mapping[str, str]) -> Filters:
        """Read an address. What is no choice of the form chooses nothing."""
        known = {
            "kind": (*GROUPS, UNPROTECTED),
            "store": tuple(STORES),
            "withstands": tuple(WITHSTANDS),
        }
        chosen = {
            name: value for name, values in known.items() if (value := asked.get(f"f_{name}", "")) in values
        }
        return cls(**chosen, text=asked.get("f_text", "").strip()[:100])

    @property
    def some(self) -> bool:
        return bool(self.kind or self.store or self.withstands or self.text)

    @property
    def kinds(self) -> tuple[str, ...]:
        return (*GROUPS, UNPROTECTED)

    @property
    def stores(self) -> tuple[str, ...]:
        return tuple(STORES)

    @property
    def hazards(self) -> tuple[str, ...]:
        return tuple(map(str, Hazard))

    def chosen(self, rows: Iterable[StrategyRow]) -> list[StrategyRow]:
        return [row for row in rows if self._fits(row)]

    def _fits(self, row: StrategyRow) -> bool:
        return (
            self.kind in ("", row.kind)
            and (not self.store or self.store in row.stores)
            and (not self.withstands or row.withstands(WITHSTANDS[self.withstands]))
            and self.text.lower() in f"{row.slug} {row.title}".lower()
        )
