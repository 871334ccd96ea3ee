"""Whatever files are uploaded: no 500, each bad line is named by its number, each good one is posted once."""

from __future__ import annotations

import re

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.imports.csvfile import parse
from ledger.models import Account, ImportLine, ImportRun
from ledger.reconciliation import books_of
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


def test_uploads(client: Client, profile: settings) -> None:
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
        _whole(run, contents, whole)

    upload()


def _whole(run: ImportRun, contents: list[bytes], whole: bool) -> None:
    """Every line of every file is accounted for, and the balances are what the posted lines say."""
    for batch, content in zip(run.batches.order_by("pk"), contents, strict=True):
        if batch.state == "duplicate":
            continue
        parsed = parse(content)
        states = dict(batch.lines.values_list("number", "state"))
        assert {line.number for line in parsed.bad} <= states.keys() or parsed.problem
        assert all(states[line.number] == "bad" for line in parsed.bad if line.number in states)
        posted = {number for number, state in states.items() if state == "posted"}
        assert posted <= {line.number for line in parsed.good}
        assert not (whole and posted and len(posted) < len(states))
        assert "waiting" not in states.values()
    lines = ImportLine.objects.filter(book=run.book, state="posted").values_list("amount", flat=True)
    opened = Account.objects.filter(book=run.book)
    assert sum(opened.values_list("balance", flat=True)) == sum(
        opened.values_list("opening", flat=True)
    ) + sum(lines)
    assert books_of(run.book).balanced
