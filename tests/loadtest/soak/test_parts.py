"""What a soak is judged by, without servers being killed: each law is broken once, and seen."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import psutil
import pytest

from ledger.books import open_book, post
from ledger.imports.upload import Upload, start_import
from ledger.models import Book
from ledger.posting import Line, Posting
from ledger.reconcile import ClientOutcome
from loadtest.history import calls as history
from loadtest.history.calls import Call, CallHistory
from loadtest.history.journal import Journal
from loadtest.soak.client import BUSY, Caller
from loadtest.soak.imports import ImportedFiles, finished
from loadtest.soak.judgement import case_of, completed, judged, once_law, shortfall
from loadtest.soak.link import LOST
from loadtest.soak.plan import BACKGROUND, KINDS, WEB, SoakPlan
from loadtest.soak.strikes import Strike, fired, recovery, stopped_at_work
from loadtest.soak.table import exit_code
from loadtest.verdict.claims import agrees
from loadtest.verdict.words import Word


@pytest.fixture
def book(committed_db: None) -> Book:
    return open_book("select-for-update", [("A0001", 0, None)])


def call(
    key: str,
    outcome: ClientOutcome = ClientOutcome.OK,
    started: float = 1.0,
    ended: float = 2.0,
    error: str = "",
) -> Call:
    return Call(key, (("A0001", 5),), outcome, started, ended, "w", error=error)


def put(book: Book, key: str) -> None:
    post(book, Posting(key, (Line("A0001", 5),)))


def test_a_plan_is_the_same_for_the_same_seed_and_has_every_kind() -> None:
    events = list(SoakPlan(postings=1000, strikes=7, imports=2, seed=4).events())
    assert events == list(SoakPlan(postings=1000, strikes=7, imports=2, seed=4).events())
    assert events != list(SoakPlan(postings=1000, strikes=7, imports=2, seed=5).events())
    assert {each.kind for each in events} == {*KINDS, ""}
    kinds = [each.kind for each in SoakPlan(strikes=13).events()]
    assert kinds.count(BACKGROUND) == kinds.count(WEB) == 5  # one for each strategy
    assert [each.count for each in events] == sorted(each.count for each in events)
    assert all(each.count <= 850 for each in events)


def test_one_intent_with_two_keys_in_the_books_is_created_money(book: Book) -> None:
    put(book, "a.0")
    assert not once_law([call("a.0")], book)
    put(book, "a.1")
    (breach,) = once_law([call("a.0", ClientOutcome.INFO), call("a.1")], book)
    assert (breach.word, breach.sentence) == ("created", "a ran 2 times, not 1")


def test_an_acknowledged_intent_without_an_entry_is_lost(book: Book) -> None:
    assert [each.word for each in once_law([call("b")], book)] == ["lost"]
    assert not once_law([call("b", ClientOutcome.INFO)], book)


def test_an_import_that_is_not_whole_is_seen(book: Book) -> None:
    files = ImportedFiles(lines=3, accounts=1, seed=0)
    files.start([book])
    assert not finished([book], patience=0)
    (breach,) = files.breaches(book)
    assert (breach.word, breach.sentence) == ("stalled", "imports incomplete: 0 lines posted, 3 waiting")


def test_a_line_that_nobody_stored_is_seen(book: Book) -> None:
    files = ImportedFiles(lines=2, accounts=1, seed=0)
    files.keys[book.pk] = ["import/soak/f1-1"]
    start_import(book, [Upload("x.csv", b"seller,account,amount,reference\nacme,A0001,1,r\n")])
    assert "1 missing" in files.breaches(book)[0].sentence


def test_a_victim_is_stopped_while_its_work_is_looked_at() -> None:
    """One at work stays stopped, so that it cannot end its work before the kill. An idle one goes on to its end."""
    seen: list[str] = []

    def look(answer: bool, pid: int) -> bool:
        seen.append(psutil.Process(pid).status())
        return answer

    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as started:
        victim = psutil.Process(started.pid)
        assert stopped_at_work(victim, partial(look, True))
        assert victim.status() == psutil.STATUS_STOPPED
        assert not stopped_at_work(victim, partial(look, False))
        assert seen == [psutil.STATUS_STOPPED] * 2
        started.communicate(b"\n", timeout=60)
    assert not stopped_at_work(victim, partial(look, True))


def test_a_process_that_did_not_die_fired_nothing() -> None:
    calls = [call("a", started=1.0, ended=5.0), call("b", started=3.0, ended=4.0)]
    gone = Strike("postgres", 2.0, 10, 123, gone=True)
    assert gone.met(calls, "book") == 1
    assert recovery(gone, calls) == 2.0
    assert recovery(Strike("postgres", 9.0, 10, 123, gone=True), calls) is None
    assert set(fired([gone], calls, "book")) == {"database-restart"}
    assert not fired([Strike("postgres", 2.0, 10, 123, gone=False)], calls, "book")


@pytest.mark.parametrize("kind", KINDS)
def test_a_strike_that_met_nothing_of_the_book_fired_nothing(kind: str) -> None:
    before_and_after = [call("a", started=1.0, ended=2.0), call("b", started=4.0, ended=5.0)]
    assert not fired([Strike(kind, 3.0, 10, 123, gone=True)], before_and_after, "book")


def test_what_a_background_worker_meets_is_lines_in_its_hands_and_no_posting() -> None:
    posted = [call("a", started=1.0, ended=5.0, error="RemoteDisconnected")]
    lines = [call("f1-1", started=2.5, ended=6.0), call("f1-2", started=2.5, ended=7.0)]
    idle = Strike(BACKGROUND, 2.0, 10, 123, gone=True)
    assert not fired([idle], posted, "book")
    assert recovery(idle, posted, lines, "book") is None
    busy = Strike(BACKGROUND, 2.0, 10, 123, gone=True, held={"book": ("f1-1", "f1-2")})
    told = {"worker-crash": "SIGKILL to background-worker 1 times, 2 lines held"}
    assert fired([idle, busy], posted, "book") == told
    assert not fired([busy], posted, "another book")
    assert recovery(busy, posted, lines, "book") == 5.0  # until the last of them was posted
    assert recovery(busy, posted, lines[:1], "book") is None
    assert busy.as_json()["held"] == {"book": 2}


def test_a_web_worker_meets_the_postings_whose_connection_breaks() -> None:
    """The others are under way in other workers; a client that loses a reply breaks its connection itself."""
    strike = Strike("web-worker", 2.0, 10, 123, gone=True)
    for error, met in (("", 0), (LOST, 0), ("RemoteDisconnected", 1)):
        assert strike.met([call("a", started=1.0, ended=5.0, error=error)], "book") == met


def test_postings_that_are_missing_are_a_doubt() -> None:
    assert not shortfall(10, 10, 10)
    assert [each.cause for each in shortfall(10, 9, 9)] == ["9 of 10 postings were completed"]
    assert [each.cause for each in shortfall(10, 10, 8)] == [
        "the clients reported 10 completed postings, but recorded 8"
    ]
    unanswered = Call("b.1", (), ClientOutcome.INFO, 1.0, float("inf"), "w", answered=False)
    assert completed(CallHistory([call("a"), call("b.0", ClientOutcome.INFO), unanswered])) == 1


@pytest.mark.parametrize(
    ("lossy", "careless", "subject", "code"),
    [
        (True, True, "kept", 0),
        (True, True, "lost", 1),
        (True, True, "stalled", 1),
        (True, False, "kept", 1),  # the careless client was not seen
        (False, True, "kept", 1),
        (True, True, "inconclusive", 3),
    ],
)
def test_the_exit_code_asks_the_controls_too(lossy: bool, careless: bool, subject: str, code: int) -> None:
    results = [
        {"control": True, "agrees": lossy},
        {"control": True, "agrees": careless},
        {"strategy": "token", "verdict": subject, "agrees": agrees(True, Word(subject))},
    ]
    assert exit_code(results) == code


def test_the_client_knows_no_django() -> None:
    source = Path(__file__).resolve().parents[3] / "loadtest" / "soak"
    for name in ("client.py", "link.py"):
        assert "django" not in (source / name).read_text().lower().replace("no django", "")


def test_after_one_unanswered_try_a_later_refusal_does_not_decide(tmp_path: Path) -> None:
    """The first try may still be at work: only an answer to all of them says "not applied"."""
    order = {"seed": 1, "number": 0, "host": "127.0.0.1", "port": 1, "drop": 0}
    caller = Caller(order, {"name": "book", "id": "book", "careful": True}, 0, Journal(tmp_path))
    for first in (ClientOutcome.INFO, ClientOutcome.FAIL):
        answers = iter(
            [(first, {"detail": "", "status": BUSY}), (ClientOutcome.FAIL, {"detail": "no", "status": 422})]
        )
        caller.link.post = lambda *_, answers=answers, **__: next(answers)  # type: ignore[method-assign]
        caller.careful(str(first), (("A1", 1),))
    assert {each.key: each.outcome for each in history.read(tmp_path).calls} == {
        str(ClientOutcome.INFO): ClientOutcome.INFO,
        str(ClientOutcome.FAIL): ClientOutcome.FAIL,
    }


def test_a_posting_that_no_client_asked_for_is_a_doubt(book: Book, tmp_path: Path) -> None:
    put(book, "asked-for")
    case = case_of(SoakPlan(accounts=1), "select-for-update", book, tmp_path)
    posted = CallHistory([call("asked-for")])

    def cause() -> str:
        return judged(case, posted, [], ImportedFiles(1, 1, 0), [], Word.LOST).verdict.cause

    assert "no client asked for" not in cause()
    put(book, "stray")
    assert "1 entry is in the books that no client asked for" in cause()
