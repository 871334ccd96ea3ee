"""The API as a state machine: posts, retries, other bodies, transfers, imports in any order, against a plain model.

The model is a dictionary of balances. After each step the books balance, and the balances are the model's: nothing
is in them twice, nothing half.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ledger.imports.upload import Upload
from ledger.models import Book, ImportLine
from ledger.posting import BIGINT, Refused
from tests.ledger.test_api import send
from tests.ledger.test_imports import HEADER, imported

Row = tuple[str, int, str]  # account, amount, reference
ACCOUNTS, FLOORS = ("A", "B", "C"), {"A": None, "B": 0, "C": -50}
OPENING = 100
accounts = st.sampled_from(ACCOUNTS)
amounts = st.integers(-120, 120) | st.sampled_from([BIGINT, -BIGINT, BIGINT - 100])
rows = st.lists(
    st.tuples(st.sampled_from([*ACCOUNTS, "nobody"]), st.integers(-80, 80)), min_size=1, max_size=5
)


class Ledger(RuleBasedStateMachine):
    """`strategy` and `http` are set by the test."""

    strategy: str
    http: Client

    def __init__(self) -> None:
        super().__init__()
        opened = [{"account": name, "opening": OPENING, "floor": FLOORS[name]} for name in ACCOUNTS]
        body = {"strategy": self.strategy, "accounts": opened, "settings": {"think": [0, 0]}}
        made = send(self.http, "/api/books", body).json()["book"]["id"]
        self.path, self.book = f"/api/books/{made}", Book.objects.get(pk=made)
        self.balances = dict.fromkeys(ACCOUNTS, OPENING)
        self.done: dict[str, tuple[Any, Any]] = {}  # key → body, entries
        self.refused: list[str] = []
        self.files: list[list[Row]] = []
        self.uploaded: set[tuple[Row, ...]] = set()
        self.posted: set[str] = set()
        self.keys = 0

    def key(self) -> str:
        self.keys += 1
        return f"k{self.keys}"

    def post(self, key: str, body: Any) -> None:
        """Post what has not been posted yet, and be answered as the model says."""
        lines = body.get("lines") or [body]
        allowed = all(self.may(line["account"], line["amount"]) for line in lines)
        answer = send(self.http, f"{self.path}/postings", body, key)
        assert answer.status_code == (201 if allowed else 422), answer.content
        if allowed:
            for line in lines:
                self.balances[line["account"]] += line["amount"]
            self.done[key] = body, answer.json()["entries"]
        else:
            assert answer.json()["applied"] == "no"
            self.refused.append(key)

    def may(self, account: str, amount: int) -> bool:
        after, floor = self.balances[account] + amount, FLOORS[account]
        return abs(after) <= BIGINT and (amount >= 0 or floor is None or after >= floor)

    @rule(account=accounts, amount=amounts)
    def deposit_or_withdraw(self, account: str, amount: int) -> None:
        self.post(self.key(), {"account": account, "amount": amount})

    @rule(pair=st.permutations(ACCOUNTS), amount=amounts)
    def transfer(self, pair: list[str], amount: int) -> None:
        self.post(
            self.key(),
            {"lines": [{"account": pair[0], "amount": amount}, {"account": pair[1], "amount": -amount}]},
        )

    @precondition(lambda self: self.refused)
    @rule(data=st.data(), account=accounts)
    def a_refused_key_is_free(self, data: Any, account: str) -> None:
        key = self.refused.pop(data.draw(st.integers(0, len(self.refused) - 1)))
        self.post(key, {"account": account, "amount": 1})

    @precondition(lambda self: self.done)
    @rule(data=st.data())
    def retry(self, data: Any) -> None:
        key = data.draw(st.sampled_from(sorted(self.done)))
        body, entries = self.done[key]
        answer = send(self.http, f"{self.path}/postings", body, key)
        assert answer.status_code == 200, answer.content
        assert answer.json()["replayed"]
        assert answer.json()["entries"] == entries

    @precondition(lambda self: self.done)
    @rule(data=st.data(), amount=amounts)
    def another_body_under_the_same_key(self, data: Any, amount: int) -> None:
        key = data.draw(st.sampled_from(sorted(self.done)))
        body, _ = self.done[key]
        other = {"lines": body["lines"][::-1]} if "lines" in body else {**body, "amount": amount}
        if other != body:
            assert send(self.http, f"{self.path}/postings", other, key).status_code == 409

    @rule(rows=rows)
    def import_file(self, rows: list[tuple[str, int]]) -> None:
        self.files.append([(account, amount, f"r{self.key()}") for account, amount in rows])
        self.work_off(self.files[-1])

    @precondition(lambda self: self.files)
    @rule(data=st.data(), backwards=st.booleans())
    def import_again(self, data: Any, backwards: bool) -> None:
        """The same bytes, or the same lines in reversed order: what was posted is not posted again."""
        rows = data.draw(st.sampled_from(self.files))
        self.work_off(rows[::-1] if backwards else rows)

    def work_off(self, rows: list[Row]) -> None:
        """What comes of each line is what the model says, in the file's order; bytes that came before: nothing."""
        lines = [f"acme,{account},{amount},{reference}" for account, amount, reference in rows]
        run = imported(self.book, [Upload("f.csv", (HEADER + "\n".join(lines)).encode())])
        told = ImportLine.objects.filter(batch__run=run).order_by("number").values_list("state", flat=True)
        if tuple(rows) in self.uploaded:
            assert run.batches.get().state == "duplicate"
            assert not told
            return
        self.uploaded.add(tuple(rows))
        assert list(told) == [self.comes_of(*row) for row in rows]

    def comes_of(self, account: str, amount: int, reference: str) -> str:
        if account not in ACCOUNTS:
            return "bad"
        if reference in self.posted:
            return "known"
        if not self.may(account, amount):
            return "refused"
        self.posted.add(reference)
        self.balances[account] += amount
        return "posted"

    @invariant()
    def the_books_are_the_models(self) -> None:
        read = {row["account"]: row["balance"] for row in self.http.get(self.path).json()["accounts"]}
        assert read == self.balances
        books = self.http.get(f"{self.path}/reconcile").json()
        assert (books["balanced"], books["lost_amount"], books["final"]) == (True, 0, sum(read.values()))


@pytest.mark.deep_after(2)
@pytest.mark.parametrize("strategy", ["select-for-update", "optimistic-version", "single-writer", "fenced"])
def test_the_books_are_those_of_the_model(strategy: str, client: Client, profile: settings) -> None:
    kind = type("Machine", (Ledger,), {"strategy": strategy, "http": client})
    run_state_machine_as_test(
        kind, settings=settings(profile, max_examples=max(2, profile.max_examples // 20))
    )


@pytest.mark.deep
def test_a_ledger_that_forgets_its_keys_is_seen(client: Client, profile: settings, monkeypatch: Any) -> None:
    """The must-fail control: it gives no first answers again."""
    monkeypatch.setattr("ledger.books._replay", lambda book, posting: None)
    kind = type("Machine", (Ledger,), {"strategy": "select-for-update", "http": client})
    found = settings(profile, max_examples=20, phases=(Phase.generate,), report_multiple_bugs=False)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(kind, settings=found)


def test_an_import_that_posts_nothing_is_seen(client: Client, profile: settings, monkeypatch: Any) -> None:
    """The must-fail control: a worker that refuses whatever it is given."""

    def refused(*_: Any) -> None:
        raise Refused("on purpose")

    monkeypatch.setattr("ledger.imports.apply.post", refused)
    kind = type("Machine", (Ledger,), {"strategy": "select-for-update", "http": client})
    found = settings(profile, max_examples=20, phases=(Phase.generate,), report_multiple_bugs=False)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(kind, settings=found)
