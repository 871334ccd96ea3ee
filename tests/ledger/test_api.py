"""The HTTP API: once for each key, and a 4xx that says what is wrong for everything else."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from django.test import Client, override_settings

from ledger.books import open_book

pytestmark = pytest.mark.usefixtures("committed_db")


@pytest.fixture
def client() -> Client:
    return Client(headers={"host": "localhost"})


def send(client: Client, path: str, body: Any, key: str | None = None, **extra: Any) -> Any:
    headers = {"Idempotency-Key": key} if key is not None else {}
    data = body if isinstance(body, str | bytes) else json.dumps(body)
    return client.post(
        path, data, content_type=extra.pop("content_type", "application/json"), headers=headers
    )


@pytest.fixture
def book(client: Client) -> str:
    accounts = [{"account": "A1", "opening": 100}, {"account": "A2", "opening": 50, "floor": 0}]
    answer = send(client, "/api/books", {"strategy": "select-for-update", "accounts": accounts})
    assert answer.status_code == 201, answer.content
    return f"/api/books/{answer.json()['book']['id']}"


def test_a_deposit_is_applied_and_read_back(client: Client, book: str) -> None:
    answer = send(client, f"{book}/postings", {"account": "A1", "amount": 10}, "k1")
    assert answer.status_code == 201
    entry = answer.json()["entries"][0]
    assert (entry["balance_before"], entry["amount"], entry["balance_after"]) == (100, 10, 110)
    assert client.get(f"{book}/accounts/A1").json()["balance"] == 110


def test_a_replayed_key_gives_the_first_answer(client: Client, book: str) -> None:
    first = send(client, f"{book}/postings", {"account": "A1", "amount": 10}, "k1")
    again = send(client, f"{book}/postings", {"account": "A1", "amount": 10}, "k1")
    assert (again.status_code, again["Idempotent-Replayed"], again.json()["replayed"]) == (200, "true", True)
    assert again.json()["entries"] == first.json()["entries"]
    assert client.get(f"{book}/accounts/A1").json()["balance"] == 110


def test_a_replayed_transfer_gives_the_first_answer_in_its_order(client: Client, book: str) -> None:
    """The accounts are written in one order for everyone, whatever order they were asked in."""
    lines = [{"account": "A2", "amount": 20}, {"account": "A1", "amount": -20}]
    first, again = (send(client, f"{book}/postings", {"lines": lines}, "k1").json() for _ in range(2))
    assert [entry["account"] for entry in first["entries"]] == ["A2", "A1"]
    assert (again["replayed"], again["entries"]) == (True, first["entries"])


def test_the_same_key_with_another_body_is_refused(client: Client, book: str) -> None:
    send(client, f"{book}/postings", {"account": "A1", "amount": 10}, "k1")
    answer = send(client, f"{book}/postings", {"account": "A1", "amount": 11}, "k1")
    assert answer.status_code == 409
    assert "take a new key" in answer.json()["detail"]
    assert client.get(f"{book}/accounts/A1").json()["balance"] == 110


def test_a_failure_is_not_remembered(client: Client, book: str) -> None:
    refused = send(client, f"{book}/postings", {"account": "A2", "amount": -60}, "k1")
    assert (refused.status_code, refused.json()["applied"]) == (422, "no")
    assert send(client, f"{book}/postings", {"account": "A2", "amount": -50}, "k1").status_code == 201


def test_a_transfer_changes_both_accounts_or_none(client: Client, book: str) -> None:
    lines = [{"account": "A1", "amount": 60}, {"account": "A2", "amount": -60}]
    assert send(client, f"{book}/postings", {"lines": lines}, "k1").status_code == 422
    assert [a["balance"] for a in client.get(book).json()["accounts"]] == [100, 50]
    lines = [{"account": "A1", "amount": 20}, {"account": "A2", "amount": -20}]
    assert send(client, f"{book}/postings", {"lines": lines}, "k1").status_code == 201
    assert [a["balance"] for a in client.get(book).json()["accounts"]] == [120, 30]


@pytest.mark.parametrize(
    ("body", "key", "status", "says"),
    [
        ("{bad", "k", 400, "cannot read the body as JSON"),
        ('{"account": "A1", "amount": 1' + "0" * 5000 + "}", "k", 400, "cannot read"),
        ('{"account": "\\u0000", "amount": 1}', "k", 400, "NUL"),
        ('{"account": "\\ud800", "amount": 1}', "k", 400, "cannot read"),
        ("[" * 100_000, "k", 400, "cannot read"),
        ('{"account": "A1", "amount": NaN}', "k", 400, "NaN is not JSON"),
        (b"\xff\xfe", "k", 400, "cannot read"),
        ({"account": "A1", "amount": 1.5}, "k", 422, "valid integer"),
        ({"account": "A1", "amount": "1"}, "k", 422, "valid integer"),
        ({"account": "A1", "amount": True}, "k", 422, "valid integer"),
        ({"account": "A1", "amount": 2**63}, "k", 422, "less than or equal"),
        ({"account": "A1", "amount": 2**63 - 1}, "k", 422, "leaves the range of BIGINT"),
        ({"account": "A9", "amount": 1}, "k", 422, "no account A9"),
        ({"account": "A1"}, "k", 422, "account and amount"),
        ({"amount": 1}, "k", 422, "account and amount"),
        ({}, "k", 422, "account and amount"),
        ({"account": "A1", "amount": 1, "lines": [{"account": "A2", "amount": 1}]}, "k", 422, "either"),
        ({"lines": [{"account": "A2", "amount": 1}] * 2}, "k", 422, "two lines"),
        ({"account": "A1", "amount": 1, "memo": "x"}, "k", 422, "memo"),
        ({"account": "A1", "amount": 1}, None, 422, "idempotency_key"),
        ({"account": "A1", "amount": 1}, "", 422, "idempotency_key"),
        ({"account": "A1", "amount": 1}, "k" * 101, 422, "idempotency_key"),
        ({"account": "A1", "amount": 1}, "a key", 422, "idempotency_key"),
    ],
)
def test_bad_postings(client: Client, book: str, body: Any, key: str | None, status: int, says: str) -> None:
    answer = send(client, f"{book}/postings", body, key)
    assert (answer.status_code, says in json.dumps(answer.json())) == (status, True), answer.content[:500]
    assert answer.json()["applied"] == "no"
    assert client.get(f"{book}/accounts/A1").json() == {
        "account": "A1",
        "balance": 100,
        "version": 0,
        "opening": None,
    }


def test_only_json_is_read(client: Client, book: str) -> None:
    answer = send(
        client, f"{book}/postings", '{"account": "A1", "amount": 1}', "k", content_type="text/plain"
    )
    assert answer.status_code == 415


@pytest.mark.parametrize("named_by_the_server", [False, True])
def test_the_text_of_an_error_is_shown_only_for_a_callers_own_lock(
    client: Client, named_by_the_server: bool
) -> None:
    strategy = "tests.loadtest.third_party:raising"
    book = open_book(strategy, [("A1", 0, None)], trusted=True)
    with override_settings(EXTRA_LOCKS=[strategy] if named_by_the_server else []):
        answer = send(client, f"/api/books/{book.pk}/postings", {"account": "A1", "amount": 1}, "k")
    told = "ask again with the same key" if named_by_the_server else "boom in acquire"
    assert answer.status_code == 500
    assert answer.json() == {"detail": f"RuntimeError: {told}", "applied": "unknown"}


@override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=1000)
def test_a_body_too_large(client: Client, book: str) -> None:
    answer = send(client, f"{book}/postings", {"description": "x" * 2000}, "k")
    assert answer.status_code == 413


def extra(keywords: Any, strategy: str = "token") -> dict[str, Any]:
    return {"strategy": strategy, "count": 1, "settings": {"extra": keywords}}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"strategy": "nope", "count": 1}, "select-for-update"),  # lists the known ones
        ({"strategy": "os:system", "count": 1}, "no strategy 'os:system'"),  # never imported for a request
        ({"strategy": "no-lock"}, "accounts or count"),
        ({"strategy": "no-lock", "count": 1, "store": "floppy"}, "Known: postgres"),
        ({"strategy": "no-lock", "count": 1, "settings": {"leese": 1}}, "no setting leese"),
        ({"strategy": "no-lock", "count": 1, "settings": {"lease": -1}}, "lease: seconds"),
        (
            {"strategy": "hash-set", "count": 1, "settings": {"lease": 1.5}},
            "uses EX/EXPIRE, give whole seconds",
        ),
        ({"strategy": "token", "count": 1, "settings": {"lease": 0.0001}}, "0.001 or more"),
        ({"strategy": "no-lock", "count": 1, "settings": {"think": [2, 1]}}, "think"),
        (extra({"directory": "/home/of/whom"}, "file-lock"), "directory is not for a client to choose"),
        (extra({"redis": 1}), "redis is not for a client"),
        (extra({"lease": -1}), "lease is a setting of its own"),
        (extra({"wait": 1e9}), "wait: a number from 0 to 3600"),
        (extra({"unit": "../x"}), "unit: a number"),
        (extra({"look": None}), "look: a number"),
        (extra([]), "an object of keywords"),
        (extra({"wiat": 1}), "token has no wiat: it takes none"),
        (extra({"wait": 1}, "select-for-update"), "select-for-update takes no lock that could be given wait"),
        (
            {"strategy": "token", "count": 1, "settings": {f"s{n}": 1 for n in range(3000)}},
            "s0, s1, s10, s100, s1000 and 2995 more",
        ),
        ({"strategy": "no-lock", "accounts": [{"account": ".."}]}, "part of its address"),
        ({"strategy": "no-lock", "count": 1, **{f"x{n}": 1 for n in range(3000)}}, "and 2980 more"),
        ({"strategy": "no-lock", "accounts": [{"account": "A"}, {"account": "A"}]}, "named twice"),
        ({"strategy": "no-lock", "accounts": [{"account": "a b"}]}, "pattern"),
    ],
)
def test_bad_books(client: Client, body: Any, says: str) -> None:
    answer = send(client, "/api/books", body)
    assert (answer.status_code, says in json.dumps(answer.json())) == (422, True), answer.content[:500]
    assert len(answer.content) < 5000


def test_a_name_has_no_character_that_nobody_sees(client: Client) -> None:
    name = "sal\u200bes \u202eatad\u2066 حساب\ufeff"
    answer = send(client, "/api/books", {"strategy": "no-lock", "count": 1, "name": name})
    assert answer.json()["book"]["name"] == "sales atad حساب"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ('{"account": "A1", "amount": 1, "amount": 1000}', "'amount' comes twice"),
        ('{"lines": [{"account": "A1", "account": "A2", "amount": 1}]}', "'account' comes twice"),
        ('{"description": ' + "[" * 30 + "]" * 30 + "}", "deeper than 20 levels"),
        ('{"description": ' + "[" * 50_000 + "]" * 50_000 + "}", "cannot read the body"),
    ],
)
def test_a_body_that_can_be_read_in_two_ways_or_hardly_at_all(
    client: Client, book: str, body: str, says: str
) -> None:
    answer = send(client, f"{book}/postings", body, "k")
    assert (answer.status_code, answer.json()["applied"]) == (400, "no")
    assert says in answer.json()["detail"]
    assert client.get(f"{book}/accounts/A1").json()["balance"] == 100


@pytest.mark.parametrize("path", ["/health/ready", "/health/live", "/api/strategies"])
def test_a_foreign_host_is_answered_in_json(path: str) -> None:
    answer = Client(headers={"host": "elsewhere.example"}).get(path)
    if answer.status_code != 200:  # `live` asks for no host
        assert (answer.status_code, answer.json()["applied"]) == (400, "no")


def test_what_is_not_there_is_404_or_says_so(client: Client, book: str) -> None:
    assert client.get(f"{book}/accounts/%00").status_code == 422
    assert client.get(f"/api/books/{uuid.uuid4()}").status_code == 404
    assert "no account A9" in client.get(f"{book}/accounts/A9").json()["detail"]
    assert "no account A9" in client.get(f"{book}/accounts/A9/reconcile").json()["detail"]


@pytest.mark.parametrize(
    ("method", "path", "status", "says"),
    [
        ("GET", "/api/book", 404, "no such address: /api/book; /api/openapi.json lists them"),
        ("POST", "/api/books/17/postings", 404, "no such address: /api/books/17/postings"),
        ("DELETE", "{book}", 405, "DELETE is not allowed here, only GET"),
        ("GET", "{book}/postings", 405, "GET is not allowed here, only POST"),
    ],
)
def test_not_found_is_json_in_the_api(
    client: Client, book: str, method: str, path: str, status: int, says: str
) -> None:
    answer = client.generic(method, path.format(book=book))
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/json")
    assert answer.json() == {"detail": answer.json()["detail"], "applied": "no"}
    assert says in answer.json()["detail"]
    assert status != 405 or answer["Allow"] in says


def test_a_host_that_is_not_ours_is_refused_in_json_too() -> None:
    answer = Client(headers={"host": "elsewhere.example"}).get("/api/strategies")
    assert (answer.status_code, answer.json()) == (400, {"detail": "Bad Request", "applied": "no"})


def test_the_pages_keep_their_own_errors(client: Client) -> None:
    assert client.get("/nothing")["Content-Type"].startswith("text/html")


def test_reconcile_over_http(client: Client, book: str) -> None:
    send(client, f"{book}/postings", {"account": "A1", "amount": 10}, "k1")
    books = client.get(f"{book}/reconcile").json()
    assert (books["final"], books["lost_amount"], books["balanced"]) == (160, 0, True)
    assert client.get(f"{book}/accounts/A1/reconcile").json()["final"] == 110


@override_settings(API_TOKEN="s3cret")
def test_with_a_token_configured_every_call_needs_it(client: Client) -> None:
    assert client.get("/api/strategies").status_code == 401
    good = client.get("/api/strategies", headers={"Authorization": "Bearer s3cret"})
    assert good.status_code == 200
    assert client.get("/api/strategies", headers={"Authorization": "Bearer wrong"}).status_code == 401


def test_an_error_names_the_key_only_where_there_is_one(
    client: Client, book: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any, **options: Any) -> None:
        raise RuntimeError("broken")

    client.raise_request_exception = False
    monkeypatch.setattr("ledger.http.api.open_book", broken)
    monkeypatch.setattr("ledger.http.api.post", broken)
    opened = send(client, "/api/books", {"strategy": "no-lock", "count": 1})
    posted = send(client, f"{book}/postings", {"account": "A1", "amount": 1}, "k")
    assert [each.status_code for each in (opened, posted)] == [500, 500]
    assert opened.json() == {"detail": "RuntimeError: look at the server's log", "applied": "unknown"}
    assert posted.json() == {"detail": "RuntimeError: ask again with the same key", "applied": "unknown"}


def test_a_refusal_names_this_request(client: Client, book: str) -> None:
    """An earlier one with the same key, which waits for a lock and whose client has gone, may still be applied."""
    refused = send(client, f"{book}/postings", {"account": "A2", "amount": -51}, "k")
    assert (refused.status_code, refused.json()["applied"]) == (422, "no")
    assert refused.json()["detail"].endswith("; this request is not applied")
    assert client.get(f"{book}/accounts/A9").json()["detail"] == "no account A9 in this book"
