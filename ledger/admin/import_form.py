"""The form of a new import: files, a book, the number of workers."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldBooleanSwitchWidget,
)

from ledger.formats import shown
from ledger.imports.samples import sample_files
from ledger.imports.upload import Upload
from ledger.imports.ways import Way, fitting
from ledger.models import Book
from ledger.names import WARM_UP
from ledger.posting import NotConfigured
from ledger.stores import STORES, store_of
from ledger.strategies import CARD, known

RECENT_BOOKS = 50
MAX_WORKERS = 16
#: the strategy of a new book for a set-based import, if the user chose none
SHARING = "select-for-update"


class FilesInput(forms.ClearableFileInput):
    """Several files at once."""

    allow_multiple_selected = True
    template_name = "ledger/files_input.html"

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        """Add `widget.most`, bytes, for the browser: the server cuts off a much larger request without explanation."""
        context = super().get_context(name, value, attrs)
        context["widget"]["most"] = settings.IMPORT_MAX_BYTES
        return context


class FilesField(forms.FileField):
    """Cleans to a list of Upload. Refuses too many files, and too many bytes before reading them."""

    widget = FilesInput

    def clean(self, data: Any, initial: Any = None) -> list[Upload]:
        files = [each for each in (data if isinstance(data, list | tuple) else [data]) if each]
        if len(files) > settings.IMPORT_MAX_FILES:
            raise forms.ValidationError(f"at most {settings.IMPORT_MAX_FILES} files at once")
        size, limit = sum(file.size for file in files), settings.IMPORT_MAX_BYTES
        if size > limit:
            raise forms.ValidationError(
                f"{size:,} bytes in all, but the limit is {limit:,} bytes: split the import"
            )
        return [Upload(file.name, file.read()) for file in files]


def number(label: str, initial: int, least: int, most: int, text: str = "") -> forms.IntegerField:
    return forms.IntegerField(
        label=label,
        initial=initial,
        min_value=least,
        max_value=most,
        help_text=text,
        widget=UnfoldAdminIntegerFieldWidget,
    )


def switch(label: str, text: str, *, initial: bool = False) -> forms.BooleanField:
    widget = UnfoldBooleanSwitchWidget
    return forms.BooleanField(label=label, required=False, initial=initial, help_text=text, widget=widget)


class ImportForm(forms.Form):
    """`cleaned_data["uploads"]`: the chosen files, or the samples when their button was pressed."""

    files = FilesField(label="Files", required=False)  # type: ignore[assignment]  # the field hides Form.files
    book = forms.ChoiceField(required=False, widget=UnfoldAdminSelectWidget, label="Book")
    strategy = forms.ChoiceField(
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text="Protects the accounts of a new book. No lock shows the loss. For your own files choose another.",
    )
    way = forms.ChoiceField(
        label="Way",
        choices=[
            (Way.LINE_BY_LINE, "Line by line"),
            (Way.SET_BASED, "Set-based"),
        ],
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text="Under the strategy, or set-based: the accounts are locked once for up to 10,000 lines.",
    )
    workers = number("Parallel workers", 4, 1, MAX_WORKERS, "How many chunks are processed at the same time.")
    scan = switch(
        "Scheduled scan", "Charges the busiest accounts every 2 seconds during the import.", initial=True
    )
    all_or_nothing = switch("All or nothing", "A file with one bad line posts nothing.")
    store = forms.ChoiceField(widget=UnfoldAdminSelectWidget)
    opening = number("Opening balance", 100_000, -(10**15), 10**15, "For each account, in minor units.")
    think = number(
        "Think time, ms", 5, 0, 1000, "The longest time that the business logic takes between read and write."
    )
    poll = number("Poll, ms", 10, 1, 10_000, "How often a waiting lock tries again.")
    timeout = number("Patience, ms", 5000, 10, 60_000, "How long a line waits for its account.")

    def __init__(self, *args: Any, book: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices: dict[str, Any] = self.fields  # Field itself has none
        choices["book"].choices = [("", "A new book"), *_books(book)]
        self.fields["book"].initial = book
        others = [(slug, f"{found.title} ({slug})") for slug, found in known().items() if slug not in CARD]
        choices["store"].choices = [(slug, slug) for slug in STORES if _is_here(slug)]
        card = [(slug, known()[slug].title) for slug in CARD]
        choices["strategy"].choices = [("Six to begin with", card), ("Further strategies", others)]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        cleaned["way"] = cleaned.get("way") or Way.LINE_BY_LINE
        chosen = cleaned.get("book") or cleaned.get("strategy") or "strategy" not in self.fields
        if cleaned["way"] == Way.SET_BASED and not chosen:
            cleaned["strategy"] = SHARING
        cleaned["uploads"] = cleaned.get("files") or []
        if "samples" in self.data:
            cleaned["uploads"] = [Upload(name, content) for name, content in sample_files().items()]
        elif not cleaned["uploads"] and "files" not in self.errors:
            self.add_error("files", "Choose one or more CSV files.")
        if "strategy" in self.fields and not cleaned.get("book") and not cleaned.get("strategy"):
            self.add_error("strategy", "Choose a strategy for the new book.")
        elif "strategy" in self.fields and not cleaned.get("book"):
            self._fits(cleaned["strategy"], cleaned.get("store"))
            self._fits_the_way(cleaned["way"], cleaned["strategy"])
        return cleaned

    def _fits(self, strategy: str, store: str | None) -> None:
        """Attach the error to the store field: its part of the page is closed until it has an error."""
        stores = known()[strategy].stores
        if store and store not in stores:
            self.add_error("store", f"{strategy} stores accounts on {' or '.join(stores)}: choose that here.")

    def _fits_the_way(self, way: str, strategy: str) -> None:
        if way == Way.SET_BASED and strategy not in fitting():
            told = f"a set-based import locks rows, and that does not keep {strategy} out: choose one of "
            self.add_error("strategy", told + ", ".join(fitting()))

    def book_settings(self) -> dict[str, Any]:
        """Return the new book's settings, in seconds."""
        chosen = self.cleaned_data
        return {
            "think": [0.0, chosen["think"] / 1000],
            "poll": chosen["poll"] / 1000,
            "timeout": chosen["timeout"] / 1000,
        }


def _is_here(store: str) -> bool:
    try:
        store_of(Book(store=store))
    except NotConfigured:
        return False
    return True


def _books(asked: str) -> list[tuple[str, str]]:
    """Return the books to choose from: the recent ones, and the one that the link names."""
    recent = list(Book.objects.exclude(name=WARM_UP)[:RECENT_BOOKS])
    try:
        wanted = Book.objects.filter(pk=UUID(asked)) if asked else Book.objects.none()
    except ValueError:
        wanted = Book.objects.none()
    return [(str(book.pk), f"{book} of {shown(book.created)}") for book in {*wanted, *recent}]
