"""`manage.py explore` and the public `explore()` give the same answers on the same operations (docs/decisions/0028)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest

from ledger.books import open_book
from ledger.models import Account, Book
from ledger.posting import Busy, Line, Posting, Refused
from ledger.strategies import find
from loadtest.bench.strategies.databases import fresh_databases
from loadtest.explorer.explore import patience
from loadtest.explorer.lanes import Lanes
from loadtest.findings.explored import HAZARD_OF, Explored
from loadtest.findings.job import Job
from loadtest.verdict.words import Word
from loadtest.workloads import EXPLORED
from locks.hazards import Hazard
from lost_update_lab import Result, explore, worker
from lost_update_lab.model.bounds import Fault
from tests.contract.arena import renewers
from tests.contract.site import UNHURRIED

TURNS = EXPLORED["deposits"]
#: the lab's words → the public ones. An invariant on the balance says nothing of a refusal
PUBLIC = {
    Word.CREATED: "violated",
    Word.LOST: "violated",
    Word.OVERSOLD: "violated",
    Word.STALLED: "stalled",
    Word.REFUSED: "kept",
    "unbroken": "kept",
}


@pytest.fixture(scope="module")
def lanes(django_db_setup: None, django_db_blocker: Any) -> Iterator[Lanes]:
    with django_db_blocker.unblock(), Lanes(1) as found:
        yield found


@pytest.fixture(scope="module", autouse=True)
def empty_database(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """A ledger in which nothing is posted yet: each schedule's look at the database reads all of it."""
    with django_db_blocker.unblock(), fresh_databases(pytest.fail) as turn, turn():
        yield


@pytest.fixture(scope="module", autouse=True)
def nobody_renews() -> None:
    """These searches use the session's Valkey. The renewal thread of another test's lock ends when it wakes, after
    half a lease, and not before it has sent one more command: to a search, a client that goes around its gates."""
    for thread in renewers("_renew"):
        thread.join(UNHURRIED)


class Books:
    """The lab's operations as anybody would put them on trial: a setup, a service function, an invariant."""

    def __init__(self, strategy: str) -> None:
        self.strategy = strategy
        self.book: Book | None = None

    def opens(self) -> None:
        accounts = [(each.account, each.opening, each.floor) for each in TURNS.openings]
        values: dict[str, Any] = {"think": [0, 0], **patience(find(self.strategy), 2)}
        self.book = open_book(self.strategy, accounts, name="exploration", values=values, trusted=True)

    def post(self, index: int) -> None:
        assert self.book
        lines = tuple(Line(account, amount) for account, amount in TURNS.legs(index))
        find(self.strategy)(self.book).apply(Posting(f"worker-{index}", lines))

    def balances(self, *results: object) -> bool:
        """The opening, what was acknowledged, and perhaps what nobody was told of."""
        [account] = Account.objects.filter(book=self.book)
        choices = []
        for index, told in enumerate(results):
            ((_, amount),) = TURNS.legs(index)
            certain = told is None or isinstance(told, Busy | Refused)
            choices.append([amount if told is None else 0] if certain else [0, amount])
        return account.balance - account.opening in map(sum, product(*choices))


def by_the_library(strategy: str, faults: int, invariant: bool = True) -> Result:
    books = Books(strategy)
    balances: Callable[..., bool] = lambda a, b: books.balances(a, b)  # noqa: E731  (it is called with both results)
    return explore(
        [worker("A", books.post, 0), worker("B", books.post, 1)],
        setup=books.opens,
        invariant=(balances, "the balance is not what was acknowledged") if invariant else None,
        refusals=[Busy, Refused],
        faults=faults,
        django=True,
        disposable=True,
        control=False,
    )


def by_the_lab(lanes: Lanes, strategy: str, faults: int) -> Explored:
    [(_, answer)] = lanes.explore([Job(strategy=strategy, faults=faults, budget=60.0)])
    found: Explored = answer["result"]
    return found


def hazards(found: Explored) -> dict[Hazard, str]:
    return {Hazard(hazard): PUBLIC[word] for hazard, (word, _) in found.came_to.items() if hazard}


def named(result: Result) -> dict[Hazard, str]:
    """The library's faults, by the lab's names."""
    names = {"contention": Hazard.CONTENTION, **{str(f): HAZARD_OF[f] for f in Fault if f in HAZARD_OF}}
    return {names[each]: word for each, word in result.hazards.items()}


@pytest.mark.deep(short=False)
@pytest.mark.usefixtures("committed_db")
@pytest.mark.parametrize(
    ("strategy", "faults"),
    [
        ("no-lock", 0),
        ("atomic-update", 1),
        ("select-for-update", 1),
        ("optimistic-version", 1),
        ("serializable", 1),
        ("naive-lock", 1),
        ("setnx", 1),
        ("token", 1),
    ],
)
def test_under_each_hazard_both_come_to_the_same(lanes: Lanes, strategy: str, faults: int) -> None:
    lab, library = by_the_lab(lanes, strategy, faults), by_the_library(strategy, faults)
    assert (lab.exhausted, library.exhausted) == (True, True), library
    theirs, ours = named(library), hazards(lab)
    # the library sees the ledger write down times; the lab has said that nothing comes of it (explorer/clients.py).
    # So a clock may jump there, and a pause may last an hour: both come to what comes without a fault
    adds_nothing = {
        hazard: theirs[Hazard.CONTENTION]
        for hazard in (Hazard.CLOCK_JUMP, Hazard.PAUSE)
        if hazard in theirs and ours.get(hazard, "kept") == "kept"
    }
    assert theirs == {**ours, **adds_nothing}


@pytest.mark.deep
@pytest.mark.usefixtures("committed_db")
@pytest.mark.parametrize(
    ("strategy", "faults", "verdict"),
    [
        ("no-lock", 0, "violated"),
        ("select-for-update", 0, "kept"),
        ("select-for-update", 1, "kept"),
        ("serializable", 1, "kept"),
    ],
)
def test_without_an_invariant_the_library_says_the_same(strategy: str, faults: int, verdict: str) -> None:
    """`ledger_entry.seq` comes from a sequence: who draws second, or after a rollback, gets another number."""
    result = by_the_library(strategy, faults, invariant=False)
    assert result.verdict == verdict, result
