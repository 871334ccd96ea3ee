"""One row of each model, for the addresses that name one."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import Group, User
from procrastinate.contrib.django.models import ProcrastinateJob

from ledger.books import open_book, post
from ledger.imports.upload import Upload, start_import
from ledger.models import Account, Entry, LockRecord
from ledger.posting import Line, Posting
from loadtest.models import Result, Trial


@pytest.fixture
def quiet() -> Iterator[None]:
    """Django logs each refusal with its stack."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def rows_of(committed_db: None) -> dict[str, object]:
    """The same as a fixture."""
    return one_row_of_each()


def one_row_of_each() -> dict[str, object]:
    """Create one row of each model. Return model → primary key."""
    book = open_book("no-lock", [("A1", 100, None)], values={"think": [0, 0]})
    post(book, Posting("k", (Line("A1", 1),)))
    run = start_import(
        book, [Upload("a.csv", b"seller,account,amount,reference\nacme,A1,1,r1\n")], scan=False
    )
    trial = Trial.objects.create(command="import", workload="imports", store="postgres")
    strategies = {"strategies": ["no-lock", "setnx"], "books": {}}
    experiment = Trial.objects.create(
        command="experiment", workload="deposits", store="postgres", options=strategies
    )
    return {
        "experiment": experiment.pk,
        "book": book.pk,
        "account": Account.objects.get(book=book).pk,
        "entry": Entry.objects.get(book=book).pk,
        "lockrecord": LockRecord.objects.get(name="center_lock").pk,
        "importrun": run.pk,
        "batch": run.batches.get().pk,
        "importline": run.batches.get().lines.get().pk,
        "trial": trial.pk,
        "result": Result.objects.create(trial=trial, strategy="no-lock", verdict="lost", data={}).pk,
        "user": User.objects.create_user(f"u-{uuid.uuid4()}").pk,
        "group": Group.objects.create(name=str(uuid.uuid4())).pk,
        "procrastinatejob": ProcrastinateJob.objects.latest("pk").pk,
    }
