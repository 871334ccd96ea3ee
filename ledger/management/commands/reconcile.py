"""`manage.py reconcile`: do the books balance? If not: what is gone, and which write overwrote which."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TextIO, cast
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import InterfaceError, OperationalError
from rich.console import Console

from ledger.addresses import NoServers
from ledger.models import Book
from ledger.posting import NotConfigured, Refused
from ledger.reconcile import AccountBooks, Books
from ledger.reconcile.terminal import show
from ledger.reconcile_stored import books_of, books_of_account

USAGE = 2
#: how many books a sentence names
NAMED = 10


class Command(BaseCommand):
    help = (
        "Walk the entries of one book (or all) back from each balance, and name what was lost or created. "
        "Exit code 0: the books balance and nothing is lost; 1: they do not, or something is lost; 2: bad usage."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--book", metavar="ID", help="one book (default: all)")
        parser.add_argument("--account", metavar="NUMBER", help="one account of that book")
        parser.add_argument("--json", action="store_true", help="print only JSON")

    def handle(self, *args: Any, book: str | None, account: str | None, **options: Any) -> None:
        try:
            found = [(each, _reconcile(each, account)) for each in _chosen(book, account)]
        except (NoServers, Refused) as error:
            raise CommandError(str(error), returncode=USAGE) from error
        except (InterfaceError, OperationalError) as error:
            raise CommandError(f"the database does not answer: {error}", returncode=USAGE) from error
        if options["json"]:
            results = [{**_about(each), **books.as_json()} for each, books in found]
            self.stdout.write(json.dumps({"right": _right(found), "results": results}, indent=2))
        else:
            console = Console(file=cast(TextIO, self.stdout), soft_wrap=True, emoji=False)
            for each, books in found:
                show(console, f"{each.name or 'book'} {each.pk}: {each.strategy} on {each.store}", books)
            if len(found) > 1:
                console.print(_in_all(found), highlight=False, markup=False)
        if not _right(found):
            raise SystemExit(1)


def _chosen(book: str | None, account: str | None) -> Iterable[Book]:
    if book is None:
        if account is not None:
            raise CommandError(
                "--account needs --book: account numbers are unique only within a book", returncode=USAGE
            )
        books = list(Book.objects.order_by("created"))
        if not books:
            raise CommandError("no book has been opened yet: `make demo` opens some", returncode=USAGE)
        return books
    try:
        return [Book.objects.get(pk=UUID(book))]
    except (ValueError, Book.DoesNotExist):
        known = "".join(f"\n  {each.pk}  {each}" for each in Book.objects.all()[:5])
        raise CommandError(f"no book {book!r}. The latest:{known or ' none'}", returncode=USAGE) from None


def _reconcile(book: Book, account: str | None) -> Books | AccountBooks:
    try:
        return books_of(book) if account is None else books_of_account(book, account)
    except NotConfigured as error:
        raise CommandError(f"{book.name or 'book'} {book.pk}: {error}", returncode=USAGE) from error


def _in_all(found: list[tuple[Book, Books | AccountBooks]]) -> str:
    """Return the sentence after the last table, which names the tables to look at."""
    wrong = [f"{each.pk} ({each.strategy})" for each, books in found if not books.right]
    if not wrong:
        return f"All {len(found)} books balance, and nothing is lost."
    more = f" and {len(wrong) - NAMED} more" if len(wrong) > NAMED else ""
    told = f"{', '.join(wrong[:NAMED])}{more}"
    return f"{len(wrong)} of {len(found)} books do not balance, or lost or created money: {told}"


def _right(found: list[tuple[Book, Books | AccountBooks]]) -> bool:
    return all(books.right for _, books in found)


def _about(book: Book) -> dict[str, Any]:
    about = {"book": str(book.pk), "name": book.name, "strategy": book.strategy, "store": book.store}
    return {**about, "created_at": book.created.isoformat()}
