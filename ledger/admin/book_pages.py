"""Read-only pages for books, accounts and entries. A book is reconciled, and an account's losses are proved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import DataError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import mark_safe
from unfold.paginator import InfinitePaginator

from ledger.admin.readonly import ReadOnlyAdmin, WarmUps, amount, moment
from ledger.chart import BAD, GOOD, PLAIN, ChartLine, over_time
from ledger.formats import shown
from ledger.imports.operations import books_with_imports
from ledger.models import Account, Book, Entry
from ledger.posting import Refused
from ledger.reconcile import timeline
from ledger.reconcile.course import Course, PeriodEnd
from ledger.reconcile_stored import losses_of
from ledger.strategies import find

SHOWN = 200
#: the most entries of a book whose course is drawn
DRAWN = 200_000
#: what reconcile found → the word that has its colour
WORDS = {"nothing lost": "kept", "nothing posted": ""}


OPENING, BALANCE, FLOOR, AMOUNT, BEFORE, AFTER = (
    amount(field) for field in ("opening", "balance", "floor", "amount", "balance_before", "balance_after")
)
READ, WRITTEN = moment("read_at"), moment("written_at")


def title_of(strategy: str) -> str:
    """Return the strategy's title, or its slug if its package is not installed here."""
    try:
        return find(strategy).title
    except LookupError:
        return strategy


class OwnWarmUps(WarmUps):
    book = ""


@admin.register(Book)
class BookAdmin(ReadOnlyAdmin):
    first_step = ("Import files into a new book", "ledger_importrun_add")
    list_display = ("name_or_id", "strategy", "store", "found", "created")
    list_filter = ("reconciliation__state", "strategy", "store", OwnWarmUps)
    list_select_related = ("reconciliation",)
    search_fields = ("name", "strategy")

    @admin.display(description="book", ordering="name")
    def name_or_id(self, book: Book) -> str:
        return book.name or f"{title_of(book.strategy)}, {shown(book.created)}"

    @admin.display(description="what reconcile found", ordering="reconciliation__state")
    def found(self, book: Book) -> str:
        last = getattr(book, "reconciliation", None)
        if last is None:
            return "not reconciled yet: its page does it"
        lost = f"{last.lost_amount:,} minor units " if last.lost_amount else ""
        word = WORDS.get(last.state, "lost")
        return format_html(
            '<span class="cell"><span class="word {}">{}</span> {}at {}</span>',
            word,
            last.state,
            lost,
            shown(last.at),
        )

    def get_urls(self) -> list[URLPattern]:
        losses = self.admin_site.admin_view(self.losses_view)
        return [
            path("<uuid:book_id>/accounts/<path:number>/losses/", losses, name="ledger_book_losses"),
            *super().get_urls(),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if not self.has_view_permission(request):  # first: a 404 would tell what is there
            raise PermissionDenied
        book = self.get_object(request, object_id)
        if book is None:
            raise Http404(f"no book {object_id}")
        course = Course(DRAWN)
        books = books_with_imports(book, course)
        context = {
            **self.admin_site.each_context(request),
            "title": book.name or "Book",
            "book": book,
            "strategy": title_of(book.strategy),
            "settings": [(name, _with_unit(value)) for name, value in book.settings.items()],
            "books": books,
            "accounts": sorted(books.accounts, key=lambda each: -each.lost_amount)[:SHOWN],
            "chart": _drawn(course.moments()),
            "too_many": DRAWN if books.entries > DRAWN else 0,
            "runs": book.import_runs.all()[:10],
            "can_import": request.user.has_perm("ledger.add_importrun"),
        }
        return TemplateResponse(request, "ledger/book.html", context)

    def losses_view(self, request: HttpRequest, book_id: UUID, number: str) -> HttpResponse:
        """Draw one loss of an account (`?entry=`, by default the first) and list the others."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        book = get_object_or_404(Book, pk=book_id)
        try:
            losses = losses_of(book, number)
            loss = losses.proof(UUID(request.GET["entry"]) if "entry" in request.GET else None)
        except (Refused, ValueError, DataError) as error:  # DataError: a NUL in the address
            raise Http404(str(error)) from error
        if loss is None and "entry" in request.GET:
            raise Http404("this entry is not lost")
        drawing = mark_safe(timeline.svg(loss.as_json())) if loss else ""  # noqa: S308  (ElementTree escapes)
        context = {
            **self.admin_site.each_context(request),
            "title": "Who overwrote whom",
            "book": book,
            "strategy": title_of(book.strategy),
            "number": number,
            "losses": losses,
            "entries": losses.entries[:SHOWN],
            "loss": loss,
            "drawing": drawing,
            "tree": losses.fork(loss.entry) if loss and loss.entry else (),
        }
        return TemplateResponse(request, "ledger/losses.html", context)


def _with_unit(value: Any) -> str:
    """A book's numbers are seconds; `think` is a pair of them."""
    if isinstance(value, list):
        return f"{value[0]:g}–{value[-1]:g} s"
    return f"{value:g} s" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _drawn(went: Sequence[PeriodEnd]) -> str:
    """Return a book's course as a drawing. What is missing has no line of its own as long as nothing is."""
    if not went:
        return ""
    lines = [
        ChartLine("expected", PLAIN, [(each.after, each.expected) for each in went]),
        ChartLine("final", GOOD, [(each.after, each.final) for each in went]),
    ]
    if any(each.missing for each in went):
        lines.append(ChartLine("missing", BAD, [(each.after, each.missing) for each in went]))
    end = went[-1]
    about = (
        f"The sum of all balances over {end.after:g} seconds: at the end {end.expected:,} minor units were expected, "
        f"the balances held {end.final:,}, {end.missing:,} were missing"
    )
    return over_time(lines, about)


@admin.register(Account)
class AccountAdmin(ReadOnlyAdmin):
    first_step = ("Import files into a new book", "ledger_importrun_add")
    list_display = ("number", "name", "book", OPENING, BALANCE, "version")
    list_filter = (WarmUps,)
    list_select_related = ("book",)
    search_fields = ("number", "name")
    ordering = ("-pk",)
    paginator = InfinitePaginator
    fields = ("number", "name", "book", OPENING, BALANCE, FLOOR, "version", "head", "losses")
    readonly_fields = (OPENING, BALANCE, FLOOR, "losses")

    @admin.display(description="who overwrote whom")
    def losses(self, account: Account) -> str:
        page = reverse("admin:ledger_book_losses", args=[account.book_id, account.number])
        return format_html('<a href="{}">lost postings of this account</a>', page)


@admin.register(Entry)
class EntryAdmin(ReadOnlyAdmin):
    first_step = ("Import files into a new book", "ledger_importrun_add")
    list_display = (WRITTEN, "account", AMOUNT, "read_and_wrote", "worker", "key")
    list_filter = (WarmUps,)
    readonly_fields = (AMOUNT, BEFORE, AFTER, READ, WRITTEN)
    list_select_related = ("account",)
    search_fields = ("key__exact", "worker")
    ordering = ("-seq",)
    paginator = InfinitePaginator
    fields = (
        ("id", "parent"),
        ("book", "account"),
        (AMOUNT, BEFORE, AFTER),
        ("key", "fingerprint"),
        ("worker", "seq"),
        (READ, WRITTEN),
    )

    @admin.display(description="read → wrote, minor units")
    def read_and_wrote(self, entry: Entry) -> str:
        return f"{entry.balance_before:,} → {entry.balance_after:,}"
