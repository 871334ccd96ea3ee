"""Whatever files are uploaded: no 500, each bad line is named by its number, each good one is posted once."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ledger.imports.csvfile import parse
from ledger.models import Account, ImportLine, ImportRun
from ledger.posting import BIGINT, Refused
from ledger.reconcile_stored import books_of
from tests.ledger.test_admin import ADD, FORM
from tests.ledger.test_imports import drain

HEADERS = st.sampled_from([b"seller,account,amount,reference", b"reference,amount,account,seller"])
NUMBERS = st.integers(-(2**64), 2**64).map(str) | st.integers(-99, 99).map(str)
GOOD = st.builds(
    lambda seller, account, amount, reference: f"{seller},{account},{amount},{reference}",
    *(st.sampled_from(["acme", "bolt", "Café & Söhne"]), st.sampled_from(["A1", "A2"]), NUMBERS),
    st.integers(0, 20).map("r-{}".format),
).map(str.encode)
JUNK = st.binary(max_size=60) | st.text(max_size=40).map(lambda text: text.encode(errors="surrogatepass"))
CONTENTS = st.builds(
    lambda header, rows, end: end.join([header, *rows]),
    HEADERS | JUNK,
    st.lists(GOOD | GOOD | JUNK, max_size=12),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
)


def uploaded(client: Client, profile: settings) -> None:
    @profile
    @given(st.lists(CONTENTS, min_size=1, max_size=2), st.booleans(), st.text(min_size=1, max_size=30))
    def upload(contents: list[bytes], whole: bool, name: str) -> None:
        name = re.sub(r"[^\w]", "_", name) + ".csv"
        form = {
            **FORM,
            "strategy": "select-for-update",
            "files": [SimpleUploadedFile(name, c) for c in contents],
        }
        before = ImportRun.objects.count()
        answer = client.post(ADD, {**form, **({"all_or_nothing": "on"} if whole else {})})
        assert answer.status_code in (200, 302), answer.status_code
        assert ImportRun.objects.count() == before + (answer.status_code == 302)
        if answer.status_code == 200:
            assert b"errorlist" in answer.content or b"no file has a line" in answer.content
            return
        run = ImportRun.objects.latest("pk")
        drain(run)
        assert client.get(answer["Location"]).status_code == 200
        _accounted_for(run, contents, whole)
        _balanced(run)

    upload()


def _accounted_for(run: ImportRun, contents: list[bytes], whole: bool) -> None:
    """Each line of each file: the bad ones are named, the good ones posted, once for each key."""
    accounts = set(Account.objects.filter(book=run.book).values_list("number", flat=True))
    parsed = [parse(content) for content in contents]
    huge = sum(abs(line.amount) for each in parsed for line in each.good) > BIGINT // 2
    seen: dict[str, tuple[str, int]] = {}
    for batch, each in zip(run.batches.order_by("pk"), parsed, strict=True):
        if batch.state == "duplicate":
            assert contents[0] == contents[1]
            continue
        states = dict(batch.lines.values_list("number", "state"))
        expected = {line.number: "bad" for line in each.bad}
        for line in each.good:
            request, first = (line.account, line.amount), seen.get(line.key)
            known = "waits" if first is None else "known" if first == request else "bad"
            expected[line.number] = known if line.account in accounts else "bad"
        if each.problem or (whole and set(expected.values()) != {"waits"}):
            assert batch.state == "rejected"
            assert "posted" not in states.values()
            continue
        seen |= {
            line.key: (line.account, line.amount) for line in each.good if expected[line.number] == "waits"
        }
        ends = {number for number, state in expected.items() if state == "waits"}
        came = {states.pop(number) for number in ends}
        assert came <= ({"posted", "refused"} if huge else {"posted"})
        assert not (whole and len(came) > 1)
        assert states == {number: state for number, state in expected.items() if number not in ends}


def _balanced(run: ImportRun) -> None:
    """The balances are what the posted lines say."""
    lines = ImportLine.objects.filter(book=run.book, state="posted").values_list("amount", flat=True)
    opened = Account.objects.filter(book=run.book)
    assert sum(opened.values_list("balance", flat=True)) == sum(
        opened.values_list("opening", flat=True)
    ) + sum(lines)
    assert books_of(run.book).balanced


def test_uploads(client: Client, profile: settings) -> None:
    uploaded(client, profile)


def test_uploads_of_which_nothing_is_posted_are_seen(
    client: Client, profile: settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The must-fail control: a worker that refuses whatever it is given."""

    def refused(*_: Any) -> None:
        raise Refused("on purpose")

    monkeypatch.setattr("ledger.imports.apply.post", refused)
    found = settings(profile, phases=(Phase.generate,), report_multiple_bugs=False)
    with pytest.raises(AssertionError):
        uploaded(client, found)
