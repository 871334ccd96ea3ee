"""Keys and account numbers that differ in case only are different ones, on every store."""

from __future__ import annotations

import pytest

from ledger.books import open_book, post
from ledger.posting import Line, Posting
from ledger.stores import store_of

pytestmark = pytest.mark.usefixtures("committed_db")
ACCOUNTS = [("shop", 100, None), ("SHOP", 100, None)]


@pytest.mark.parametrize("store", ["postgres", "mariadb", "redis"], indirect=True)
def test_inv_a1_is_not_the_payment_that_inv_A1_was(store):
    strategy = "token" if store == "redis" else "select-for-update"
    book = open_book(strategy, ACCOUNTS, store=store, values={"think": [0, 0]})
    done = [post(book, Posting(key, (Line("shop", 10),))) for key in ("INV-A1", "inv-a1")]
    assert [each.replayed for each in done] == [False, False]
    read = store_of(book).read(Posting("", (Line("shop", 0), Line("SHOP", 0))))
    assert {number: each.balance for number, each in read.items()} == {"shop": 120, "SHOP": 100}
