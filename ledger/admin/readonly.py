"""Pages of the admin that only show rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.formats import date_format
from django.utils.timezone import localtime
from unfold.admin import ModelAdmin

from ledger.names import WARM_UP


def amount(field: str) -> Callable[[Any], str]:
    """Return a column that shows the amount `field` with separators, and its unit in the heading."""

    @admin.display(description=f"{field.replace('_', ' ')}, minor units", ordering=field)
    def column(row: Any) -> str:
        value = getattr(row, field)
        return "–" if value is None else f"{value:,}"

    return column


def moment(field: str) -> Callable[[Any], str]:
    """Return a column that shows the time `field` to the microsecond: writes that overwrite each other are close."""

    @admin.display(description=field.replace("_", " "), ordering=field)
    def column(row: Any) -> str:
        return date_format(localtime(getattr(row, field)), "Y-m-d H:i:s.u T")

    return column


class WarmUps(admin.SimpleListFilter):
    """The books in which a load test warms up its callers tell nothing: they are hidden until asked for. A subclass
    names the way from its rows to their book."""

    title = "warm-up books"
    parameter_name = "warm_up"
    book = "book__"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("shown", "Shown")]

    def choices(self, changelist: Any) -> Iterator[Any]:
        hidden, *others = super().choices(changelist)
        yield from ({**hidden, "display": "Hidden"}, *others)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset if self.value() == "shown" else queryset.exclude(**{f"{self.book}name": WARM_UP})


def took(began: datetime, ended: datetime | None) -> str:
    """Return how long something took, in seconds; a dash while it has not ended."""
    if ended is None:
        return "–"
    seconds = (ended - began).total_seconds()
    return f"{seconds:,.{1 if seconds < 10 else 0}f}\u00a0s"


class ReadOnlyAdmin(ModelAdmin):
    """Rows that only the ledger writes: the permission to view is the only one that counts.

    `first_step`: where such a row comes from, for who finds none: (what to press, the page's name in the admin).
    """

    first_step: tuple[str, str] = ("Open the start page", "index")

    actions: Any = None
    list_per_page = 50
    show_full_result_count = False

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        words, page = self.first_step
        more = {
            "title": str(self.opts.verbose_name_plural).capitalize(),
            "first_step": words,
            "first_page": f"admin:{page}",
        }
        return super().changelist_view(request, {**more, **(extra_context or {})})

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
