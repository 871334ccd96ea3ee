"""A file is looked at before anything is posted; what was not posted comes back as a CSV to mend."""

from __future__ import annotations

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from ledger.books import open_book
from ledger.imports.apply import work
from ledger.imports.chunks import claim
from ledger.imports.preview import failed_lines
from ledger.imports.upload import Upload, start_import
from ledger.models import ImportRun
from tests.ledger.test_admin import FORM, user

pytestmark = pytest.mark.usefixtures("committed_db")
ADD = "/admin/ledger/importrun/add/"
CONTENT = b"seller,account,amount,reference\nacme,A1,1000,r1\nacme,A1,1.50,r2\nacme,A1,5,r3\n"


def looked_at(content: bytes, **headers: str):
    form = {**FORM, "look": "1", "files": SimpleUploadedFile("a.csv", content)}
    return user("ledger.add_importrun").post(ADD, form, headers=headers)


def test_a_look_says_what_is_wrong_and_posts_nothing() -> None:
    before = ImportRun.objects.count()
    for headers in ({}, {"HX-Request": "true"}):
        page = looked_at(CONTENT, **headers).content.decode()
        assert "2 lines can be posted, 1,005 minor units" in page
        assert "12.50 is 1250" in page
        assert ("<form" in page) is not bool(headers)  # the script exchanges only the part
    assert ImportRun.objects.count() == before


def test_a_file_that_cannot_be_imported_at_all_and_none() -> None:
    assert "missing amount" in looked_at(b"seller,account,reference\na,b,c\n").content.decode()
    nothing = user("ledger.add_importrun").post(ADD, {**FORM, "look": "1"}).content.decode()
    assert "Choose a file first" in nothing or "required" in nothing


def test_the_lines_that_failed_come_back_as_they_were_sent() -> None:
    book = open_book("select-for-update", [("A1", 100, None)])
    run = start_import(book, [Upload("a.csv", CONTENT)], scan=False)
    while chunk := claim(run.pk, 0):
        work(chunk)
    batch = run.batches.get()
    assert failed_lines(batch) == b"seller,account,amount,reference\nacme,A1,1.50,r2\n"
    answer = user("ledger.view_importrun").get(f"/admin/ledger/importrun/{run.pk}/failed/{batch.pk}.csv")
    assert answer.content == failed_lines(batch)
    assert "attachment" in answer["Content-Disposition"]
