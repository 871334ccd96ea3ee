"""The trial of the workload `imports` with real workers: whatever ends it, its import is over."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ledger.models import Book, ImportRun
from loadtest.history.calls import CallHistory
from loadtest.history.journal import Journal
from loadtest.swarm.importing_swarm import ImportingSwarm
from loadtest.swarm.run import Swarm
from loadtest.trials.case import TrialCase, Witness
from loadtest.workloads.imports import Imports

pytestmark = pytest.mark.usefixtures("empty_queue")


@dataclass(frozen=True, kw_only=True)
class Interrupted(Swarm):
    """A caller is seen under way, the import begins, and Ctrl-C is pressed."""

    def __call__(self, case: TrialCase, book: Book) -> Witness:
        assert self.keep
        Journal(self.keep / f"no-lock-{book.pk}").invoke("k1", [("A0001", 1)], "a caller")
        self.tick(0.5)
        assert ImportRun.objects.filter(book=book, finished=None).exists()
        raise KeyboardInterrupt


@pytest.mark.deep
def test_no_later_worker_takes_up_the_import_of_a_trial_that_was_interrupted():
    case = TrialCase(strategy="no-lock", workload=Imports(lines=2000), settings={"think": [0.0, 0.0]})
    book = case.open()
    with pytest.raises(KeyboardInterrupt):
        ImportingSwarm(swarm=Interrupted(host="nowhere"))(case, book)
    assert not ImportRun.objects.filter(finished=None, book=book).exists()


@dataclass(frozen=True, kw_only=True)
class Under(Swarm):
    """A caller is seen under way until the import has begun."""

    def __call__(self, case: TrialCase, book: Book) -> Witness:
        assert self.keep
        Journal(self.keep / f"no-lock-{book.pk}").invoke("k1", [("A0001", 1)], "a caller")
        self.tick(0.5)
        return Witness(history=CallHistory([]))


def test_an_import_of_which_nothing_was_posted_proves_nothing(monkeypatch):
    monkeypatch.setattr(
        Imports, "files", lambda self: {"bad.csv": b"seller,account,amount,reference\nx,,,\n"}
    )
    case = TrialCase(strategy="no-lock", workload=Imports(), settings={"think": [0.0, 0.0]})
    seen = ImportingSwarm(swarm=Under(host="nowhere"))(case, case.open())
    assert "no line of the import was posted" in [doubt.cause for doubt in seen.doubts]
