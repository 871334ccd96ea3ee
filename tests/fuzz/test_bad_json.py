"""Whatever is sent to the API: an answer below 500 that says what is wrong, and nothing half-applied."""

from __future__ import annotations

import json
import uuid
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from ledger.books import open_book, post
from ledger.models import Account, Book, Entry
from ledger.posting import Line, Posting
from ledger.reconcile_stored import books_of
from tests.ledger.test_api import send

HUGE = st.sampled_from([2**63, -(2**63) - 1, 10**4000, 1e308, -0.0, float("nan"), float("inf")])
TEXTS = st.text(max_size=20) | st.sampled_from(
    ["\0", "\ud800", "A" * 10_000, "A1\n", "../A1", "%00", "A1' --"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | HUGE,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
LINE = {"account": "A1", "amount": 5}
POSTINGS = [LINE, {"lines": [LINE, {"account": "A2", "amount": -5}], "description": "x"}]
SETTINGS = {
    "think": [0, 0],
    "lease": 1,
    "poll": 0.1,
    "timeout": 1,
    "retries": 1,
    "backoff": [0, 0],
    "extra": {},
}
BOOKS = [
    {"strategy": "setnx", "count": 2, "settings": SETTINGS},
    {
        "strategy": "no-lock",
        "store": "redis",
        "name": "x",
        "accounts": [{"account": "A", "opening": 1, "floor": 0}],
    },
]


@st.composite
def spoiled(draw: Any, good: list[Any]) -> bytes:
    """A good body with one thing in it replaced or added; or its bytes broken; or anything else. One of four is left
    as it is: what nothing reaches says nothing."""
    body = json.loads(json.dumps(draw(st.sampled_from(good))))
    if draw(st.integers(0, 3)) == 0:
        return json.dumps(body).encode()
    place = body
    while isinstance(place, dict | list) and place and draw(st.booleans()):
        inner = place[draw(st.sampled_from(sorted(place)))] if isinstance(place, dict) else place[0]
        if not isinstance(inner, dict | list):
            break
        place = inner
    if isinstance(place, dict):
        name = draw(st.sampled_from([*sorted(place), "other"]) | TEXTS)
        place[name] = draw(VALUES)
    else:
        place.append(draw(VALUES))
    sent = json.dumps(body if draw(st.integers(0, 9)) else draw(VALUES)).encode()
    if draw(st.integers(0, 5)) == 0:
        cut = draw(st.integers(0, len(sent)))
        sent = sent[:cut] + draw(st.binary(max_size=4)) + sent[cut + draw(st.integers(0, 3)) :]
    return sent


@pytest.fixture
def book(profile: settings) -> Book:
    return open_book("select-for-update", [("A1", 100, None), ("A2", 50, 0)], values={"think": [0, 0]})


def balances(book: Book) -> list[int]:
    return list(Account.objects.filter(book=book).order_by("number").values_list("balance", flat=True))


def posted(client: Client, book: Book, profile: settings) -> None:
    keys = st.text(
        alphabet=st.characters(codec="latin-1", exclude_characters="\r\n"), max_size=120
    ) | st.uuids().map(str)
    answers = set()

    @profile
    @example(json.dumps(LINE).encode(), "k", 1)
    @given(spoiled(POSTINGS), st.none() | keys, st.integers(0, 9))
    def post(body: bytes, key: str | None, odd: int) -> None:
        before, entries = balances(book), Entry.objects.filter(book=book).count()
        kind = "application/json" if odd else "text/plain"
        answer = send(client, f"/api/books/{book.pk}/postings", body, key, content_type=kind)
        answers.add(answer.status_code)
        assert answer.status_code < 500, (answer.status_code, answer.content[:500])
        if answer.status_code >= 300:
            assert answer.json()["detail"]
            assert balances(book) == before
            assert Entry.objects.filter(book=book).count() == entries

    post()
    assert 201 in answers, "some are good, and reach the ledger"
    books = books_of(book)
    assert books.balanced
    assert sum(balances(book)) == books.final


def test_bad_postings(client: Client, book: Book, profile: settings) -> None:
    posted(client, book, profile)


def test_a_refusal_that_moves_money_is_seen(
    client: Client, book: Book, profile: settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The must-fail control: each request pays 1 more, whatever it is answered."""

    usual = send

    def pays(*args: Any, **options: Any) -> Any:
        post(book, Posting(str(uuid.uuid4()), (Line("A1", 1),)))
        return usual(*args, **options)

    monkeypatch.setattr(f"{__name__}.send", pays)
    found = settings(profile, phases=(Phase.generate,), report_multiple_bugs=False)
    with pytest.raises(AssertionError):
        posted(client, book, found)


def test_bad_books_can_be_posted_to_if_they_were_opened(client: Client, profile: settings) -> None:
    answers = set()

    @profile
    @example(json.dumps(BOOKS[0]).encode())
    @given(spoiled(BOOKS))
    def opened(body: bytes) -> None:
        before = Book.objects.count()
        answer = send(client, "/api/books", body)
        assert answer.status_code < 500, (answer.status_code, answer.content[:500])
        answers.add(answer.status_code)
        if answer.status_code != 201:
            assert Book.objects.count() == before
            return
        made = answer.json()
        path = f"/api/books/{made['book']['id']}"
        assert client.get(path).status_code == 200
        account = made["accounts"][0]["account"]
        posted = send(client, f"{path}/postings", {"account": account, "amount": 1}, "k")
        assert posted.status_code < 500 or posted.json()["applied"] == "no", posted.content[:500]
        assert client.get(f"{path}/reconcile").json()["balanced"]

    opened()
    assert 201 in answers, "some are good, and opened"


def test_odd_addresses(client: Client, book: Book, profile: settings) -> None:
    @profile
    @given(st.text(max_size=50), st.sampled_from(["", "/reconcile"]))
    def get(number: str, end: str) -> None:
        try:
            part = quote(number, safe="")
        except UnicodeEncodeError:
            return
        assert client.get(f"/api/books/{book.pk}/accounts/{part}{end}").status_code < 500
        assert client.get(f"/api/books/{part}{end}").status_code < 500
        assert client.get(f"/admin/ledger/book/{book.pk}/accounts/{part}/losses/").status_code < 500

    get()
