"""A SELECT that calls only pure functions of PostgreSQL reads, as one that calls none; any other may do anything."""

from __future__ import annotations

import pytest

from lost_update_lab.gates.postgres.describe import describe
from lost_update_lab.servers.postgres.server import PostgresServer
from tests.lost_update_lab.bank import CONTENTS, Bank
from tests.lost_update_lab.conftest import standing


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("SELECT count(*), coalesce(sum(balance), 0) FROM account", True),
        ("SELECT pg_catalog.version()", True),
        ("SELECT id FROM account WHERE id IN (SELECT max(id) FROM account)", True),
        ("SHOW transaction_isolation", True),
        ("SELECT claim(1)", False),
        ("SELECT shop.count(1)", False),
        ('SELECT "count"(1)', False),
        ("SELECT count(*), nextval('number') FROM account", False),
        ("SELECT count(*) FROM account FOR UPDATE", False),
        ("SELECT count(*) FROM account; DELETE FROM account", False),
    ],
)
def test_it_reads(text: str, reads: bool) -> None:
    assert describe("execute", {"query": text}, idle=True).reads is reads


def test_a_function_of_the_users_with_such_a_name(explorer_urls: tuple[str, str]) -> None:
    bank = Bank(lambda bank, amount: "ok", *explorer_urls)
    with standing(bank, explorer_urls, CONTENTS) as harness:
        bank.admin.execute(
            "CREATE FUNCTION length(int) RETURNS int LANGUAGE sql AS 'DELETE FROM account; SELECT 1'"
        )
        try:
            server = harness.servers["postgres"]
            assert isinstance(server, PostgresServer)
            assert server.unseen.calls("SELECT length(1)")
            assert not server.unseen.calls("SELECT lower('A')")
        finally:
            bank.admin.execute("DROP FUNCTION length(int)")
