"""The choice of strategies that the forms of comparisons share. Without a choice: the six of the card."""

from __future__ import annotations

from django import forms
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from ledger.strategies import CARD, known


def choices() -> list[tuple[str, str]]:
    """Return (slug, title), the card's first."""
    found = known()
    return [(slug, found[slug].title) for slug in (*CARD, *(slug for slug in found if slug not in CARD))]


def strategies_field() -> forms.MultipleChoiceField:
    return forms.MultipleChoiceField(
        required=False,
        initial=CARD,
        choices=choices,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        label="Strategies",
    )
