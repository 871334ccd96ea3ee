"""The choice of strategies that the forms of comparisons share. Without a choice: the six of the card."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django import forms
from django.forms.boundfield import BoundWidget
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from ledger.strategies import CARD, known
from loadtest.report.pages.kinds import GROUPS, UNPROTECTED, group_of


class Box(NamedTuple):
    """A strategy's tick."""

    widget: BoundWidget
    kind: str

    @property
    def ticked(self) -> bool:
        return bool(self.widget.data["selected"])


class StrategyKind(NamedTuple):
    """Strategies under one heading. `name`: their kind, "" for the six of the card."""

    name: str
    boxes: Sequence[Box]

    @property
    def ticked(self) -> int:
        return sum(box.ticked for box in self.boxes)


class StrategiesBoundField(forms.BoundField):
    """`kinds`: the ticks as the form shows them, each once: the six of the card, then all others by their kind."""

    def kinds(self) -> list[StrategyKind]:
        boxes = [Box(each, group_of(str(each.data["value"]))) for each in self]
        first, others = boxes[: len(CARD)], boxes[len(CARD) :]
        kinds = [
            StrategyKind(name, [box for box in others if box.kind == name])
            for name in dict.fromkeys((*GROUPS, UNPROTECTED))
        ]
        return [StrategyKind("", first), *(kind for kind in kinds if kind.boxes)]


class StrategiesField(forms.MultipleChoiceField):
    bound_field_class = StrategiesBoundField


def asked_for(request: HttpRequest) -> dict[str, list[str]]:
    """Return what the form is filled with at first: the `?strategy=` of a link."""
    slug = request.GET.get("strategy", "")
    return {"strategies": [slug]} if slug in known() else {}


def choices() -> list[tuple[str, str]]:
    """Return (slug, title), the card's first."""
    found = known()
    return [(slug, found[slug].title) for slug in (*CARD, *(slug for slug in found if slug not in CARD))]


def strategies_field() -> StrategiesField:
    return StrategiesField(
        required=False,
        initial=CARD,
        choices=choices,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        label="Strategies",
    )
