"""The HTTP API, in JSON: open a book under a strategy, post to it, read it, and check whether it balances.

What a response means for the money:

    2xx                                     applied
    4xx and 503 with `"applied": "no"`      certainly not applied by this request
    5xx with `"applied": "unknown"`         unknown: ask again with the same Idempotency-Key

A "no" says nothing about the key while an earlier request with that key has no answer:

    request 1, key k: waits for a lock … (its client gives up waiting) …              gets the lock, is applied
    request 2, key k:                                       503 "no": the lock is held
"""

from __future__ import annotations

import logging
import secrets
from contextlib import suppress
from typing import Annotated, Any
from uuid import UUID

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from ninja import Header, NinjaAPI, Path, Status
from ninja.errors import HttpError, ValidationError
from ninja.security import HttpBearer

from ledger.addresses import NoServers
from ledger.books import KeyReused, book_of, open_book, post
from ledger.http import schemas
from ledger.http.parser import StrictParser
from ledger.models import Book
from ledger.posting import Busy, Line, NotConfigured, Posting, Refused
from ledger.reconcile_stored import books_of, books_of_account
from ledger.stores import store_of
from ledger.strategies import known

#: how many characters of an error go into the response
WORDS = 300
#: errors of a body that an answer lists
MOST_ERRORS = 20
log = logging.getLogger(__name__)


class Token(HttpBearer):
    """`Authorization: Bearer <API_TOKEN>`. Without a configured token the API is open, on loopback only."""

    def __call__(self, request: HttpRequest) -> Any:
        return True if not settings.API_TOKEN else super().__call__(request)

    def authenticate(self, request: HttpRequest, token: str) -> Any:
        return secrets.compare_digest(token.encode(), settings.API_TOKEN.encode()) or None


api = NinjaAPI(title="Lost Update Lab", version="1", auth=Token(), docs_url=None, parser=StrictParser())


def _problem(request: HttpRequest, status: int, detail: Any, applied: str = "no") -> HttpResponse:
    return api.create_response(request, {"detail": detail, "applied": applied}, status=status)


@api.exception_handler(HttpError)
def _http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    # ninja hides the parser's error behind "Cannot parse request body". The cause is the useful answer.
    cause = error.__cause__ or error.__context__
    told = cause if isinstance(cause, HttpError) else error
    return _problem(request, told.status_code, str(told))


@api.exception_handler(ValidationError)
def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    told = [{**each, "loc": [str(part)[:40] for part in each["loc"]]} for each in error.errors[:MOST_ERRORS]]
    more = len(error.errors) - len(told)
    return _problem(request, 422, [*told, *([{"msg": f"and {more} more"}] if more else [])])


@api.exception_handler(RequestDataTooBig)
def _too_big(request: HttpRequest, error: Exception) -> HttpResponse:
    return _problem(request, 413, "the body is larger than this server takes")


@api.exception_handler(Refused)
def _refused(request: HttpRequest, error: Exception) -> HttpResponse:
    return _problem(request, 422, _of_this_request(request, str(error)))


@api.exception_handler(KeyReused)
def _key_reused(request: HttpRequest, error: Exception) -> HttpResponse:
    return _problem(request, 409, str(error))


@api.exception_handler(Busy)
def _busy(request: HttpRequest, error: Exception) -> HttpResponse:
    return _problem(request, 503, _of_this_request(request, f"busy: {error}"))


@api.exception_handler(NotConfigured)
@api.exception_handler(NoServers)
def _not_configured(request: HttpRequest, error: Exception) -> HttpResponse:
    """A server is missing. All servers are looked up before the first write, so nothing was applied."""
    return _problem(request, 503, _of_this_request(request, str(error)))


@api.exception_handler(Exception)
def _unknown(request: HttpRequest, error: Exception) -> HttpResponse:
    """Do not show the error's text, which may contain a secret of this server. Exception: the author of a lock from the
    command line needs the text."""
    log.exception("a request's outcome is unknown", exc_info=error)
    told = "ask again with the same key" if _is_a_posting(request) else "look at the server's log"
    match, ours = request.resolver_match, settings.EXTRA_LOCKS
    with suppress(DatabaseError):
        book = (
            Book.objects.filter(pk=match.kwargs["book_id"]).first()
            if match and "book_id" in match.kwargs
            else None
        )
        if book and ":" in book.strategy and book.strategy not in ours:
            told = str(error)[:WORDS]
    return _problem(request, 500, f"{type(error).__name__}: {told}", "unknown")


def _is_a_posting(request: HttpRequest) -> bool:
    return "Idempotency-Key" in request.headers


def _of_this_request(request: HttpRequest, why: str) -> str:
    """Certainly not applied by this request. An earlier one with the same key and no answer may still be applied."""
    return f"{why}; this request is not applied" if _is_a_posting(request) else why


def _book(book_id: UUID) -> Book:
    try:
        return book_of(book_id)
    except Book.DoesNotExist:
        raise HttpError(404, f"no book {book_id}") from None


@api.get("strategies", response=list[schemas.StrategyOut])
def strategies(request: HttpRequest) -> list[dict[str, Any]]:
    """Every strategy that a book may be opened under, with what it claims to withstand."""
    return [
        {"strategy": slug, "title": s.title, "stores": s.stores, "withstands": sorted(s.withstands)}
        for slug, s in known().items()
    ]


@api.post("books", response={201: schemas.BookOut})
def create_book(request: HttpRequest, body: schemas.BookIn) -> Status[Any]:
    """Open a book: its strategy is bound to it here, once."""
    try:
        book = open_book(body.strategy, body.opened(), store=body.store, name=body.name, values=body.settings)
    except ValueError as error:
        raise HttpError(422, str(error)) from error
    return Status(201, _book_out(book))


@api.get("books/{uuid:book_id}", response=schemas.BookOut)
def read_book(request: HttpRequest, book_id: UUID) -> Any:
    """A book and its accounts (the first 1000)."""
    return _book_out(_book(book_id))


def _book_out(book: Book) -> dict[str, Any]:
    accounts = store_of(book).whole_accounts()[:1000]
    return {"book": book, "accounts": [_account_out(row) for row in accounts]}


def _account_out(row: Any) -> dict[str, Any]:
    return {"account": row.number, "opening": row.opening, "balance": row.balance, "version": row.version}


@api.get("books/{uuid:book_id}/accounts/{number}", response=schemas.AccountOut)
def read_account(request: HttpRequest, book_id: UUID, number: Path[schemas.Number]) -> Any:
    """One account's balance and version."""
    read = store_of(_book(book_id)).read(Posting("", (Line(number, 0),)))[number]
    return {"account": number, "balance": read.balance, "version": read.version}


@api.post("books/{uuid:book_id}/postings", response={201: schemas.PostingOut, 200: schemas.PostingOut})
def create_posting(
    request: HttpRequest,
    book_id: UUID,
    body: schemas.PostingIn,
    response: HttpResponse,
    idempotency_key: Annotated[str, Header(min_length=1, max_length=100, pattern=r"^[\x21-\x7e]+$")],
) -> Status[Any]:
    """Deposit (amount above 0), withdraw (below 0), or transfer (several lines), once for each key."""
    posting = Posting(
        idempotency_key, tuple(Line(x.account, x.amount) for x in body.all_lines()), body.description
    )
    done = post(_book(book_id), posting)
    if done.replayed:
        response["Idempotent-Replayed"] = "true"
    answer = {
        "key": posting.key,
        "replayed": done.replayed,
        "retries": done.retries,
        "warning": done.warning,
        "entries": done.entries,
    }
    return Status(200 if done.replayed else 201, answer)


@api.get("books/{uuid:book_id}/accounts/{number}/reconcile")
def reconcile_one(request: HttpRequest, book_id: UUID, number: Path[schemas.Number]) -> Any:
    """Does this account's balance follow from its entries? Which write overwrote which?"""
    return books_of_account(_book(book_id), number).as_json()


@api.get("books/{uuid:book_id}/reconcile")
def reconcile_all(request: HttpRequest, book_id: UUID) -> Any:
    """The same for every account of the book, with the sums."""
    return books_of(_book(book_id)).as_json()
