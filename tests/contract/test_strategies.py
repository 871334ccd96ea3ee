"""Every strategy through the same cases, on each store where its code differs. There is no list to keep: a registered
strategy is here.

    contention   two callers in a race: a strategy that claims it keeps every posting, and one that does not loses money
    repeat       a key that comes twice is one posting
    crash        a caller dies between its read and its write: nothing of it is left; a strategy that claims it serves
                 the next one
    refusal      a posting that is refused changes nothing, and blocks no other

The races are conducted by gates (tests/ledger/race): no sleep decides anything.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from ledger.books import KeyReused, post
from ledger.posting import Line, Posting, Refused
from ledger.stores import KeyTaken
from ledger.strategies import CARD, CONTROL, STRATEGIES, Locked, find
from ledger.strategies.no_lock import NoLock
from loadtest.faults.scene import scaled
from loadtest.trials import dependencies
from locks import LOCKS
from locks.hazards import Hazard
from locks.token_leaky import TokenLeakyLock
from tests.ledger.race import Race, State

pytestmark = pytest.mark.usefixtures("committed_db")


@pytest.fixture(autouse=True)
def a_process_of_its_own() -> None:
    """token-leaky keeps a pool for its process, which runs empty: each test begins with a new one."""
    TokenLeakyLock._pools.clear()


#: locks that are raced here all the same, on each store: the card's, and the one whose number the store checks
RACED_LOCKS = {*CARD, "token", "fenced"}


def is_a_lock(slug: str) -> bool:
    """Is it made of a lock beside the store? Then `tests/contract` puts the lock itself through contention and crashes,
    with real processes."""
    return slug in LOCKS and issubclass(STRATEGIES[slug], Locked) and "sql" not in dependencies.asked(slug)


def out_of_reach(slug: str) -> bool:
    """Does its lock wait for a replica or a disk, or for ZooKeeper? The gates have none of these: test_replicated.py
    and test_race_zookeeper.py do."""
    return bool({"confirm", "zookeeper"} & dependencies.asked(slug))


def stores_of(slug: str) -> tuple[str, ...]:
    """A lock beside the store is the same on each."""
    return STRATEGIES[slug].stores[: 1 if is_a_lock(slug) and slug not in RACED_LOCKS else None]


CELLS = [(slug, store) for slug in STRATEGIES if not out_of_reach(slug) for store in stores_of(slug)]
#: no caller gets in after the first release, whatever was posted (tests/contract/test_published.py)
STUCK = {"counter"}
#: those that are judged by a conducted race
RACED = [(slug, store) for slug, store in CELLS if not is_a_lock(slug) or slug in RACED_LOCKS]


def claiming(hazard: Hazard) -> list[tuple[str, str]]:
    return [(slug, store) for slug, store in RACED if hazard in find(slug).withstands]


def not_claiming(hazard: Hazard) -> list[tuple[str, str]]:
    return [(slug, store) for slug, store in RACED if hazard not in find(slug).withstands]


def each(cells: list[tuple[str, str]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("slug", "store"), cells, ids=[f"{slug}-{store}" for slug, store in cells], indirect=["store"]
    )


# -- contention -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("second_first", [False, True], ids=["first-in-first", "second-in-first"])
@each(claiming(Hazard.CONTENTION))
def test_a_claim_of_contention_keeps_the_balance(slug: str, store: str, second_first: bool) -> None:
    with Race(slug, store=store) as race:
        a, b = race.worker("A", +10), race.worker("B", +20)
        a.runs_to("think")
        far = b.tries("think")
        order = (b, a) if second_first and far is State.STOPPED else (a, b)
        for worker in order:
            worker.tries("the end")  # it may have to wait for the other one's transaction
        for worker in order:
            worker.finishes()
        assert race.balance() == 130
        assert race.kept()


#: what others post while a caller stands still, and how far they get: the balance goes down; comes back to what it
#: was; or the other one has read it, too
MEANWHILE = [((-80,), "the end"), ((-80, +80), "the end"), ((-80,), "think")]
#: the most places at which it is stopped
PLACES = 20


@each(not_claiming(Hazard.CONTENTION))
def test_without_the_claim_money_is_lost(slug: str, store: str) -> None:
    """A caller is stopped before its first command, before its second one, and so on, while others post."""
    tried = (raced(slug, store, place, *others) for others in MEANWHILE for place in range(1, PLACES))
    assert any(tried), f"{slug} does not claim contention, and no such race broke it: does it keep the money?"


def raced(slug: str, store: str, place: int, meanwhile: tuple[int, ...], far: str) -> str:
    """What was wrong with the books; "": nothing, or its code has no such place."""
    with Race(slug, store=store, floor=0) as race:
        stopped = race.worker("A", -80)
        if any(stopped.tries(".") is not State.STOPPED for _ in range(place)):
            return ""
        others = [race.worker(f"B{number}", amount) for number, amount in enumerate(meanwhile)]
        for other in others:
            other.tries(far)
        for worker in (stopped, *others):
            worker.tries("the end")  # it may have to wait for another one
        for worker in (stopped, *others):
            with suppress(Exception):  # refused, or aborted by the database
                worker.finishes()
        return wrong(race, 0)


def test_a_strategy_that_loses_nothing_is_found_out() -> None:
    assert not any(raced("atomic-update", "postgres", place, (-80,), "think") for place in range(1, PLACES))


def wrong(race: Race, floor: int | None) -> str:
    books = race.books()
    if books.lost_updates or books.created_updates or books.torn:
        return f"{books.lost_updates} lost, {books.created_updates} created, {books.torn} torn"
    balance = race.balance()
    return f"the balance is {balance}" if floor is not None and balance < floor else ""


# -- a key that comes twice -----------------------------------------------------------------------------------------


@each(CELLS)
def test_a_repeated_key_is_one_posting(slug: str, store: str) -> None:
    with Race(slug, store=store) as race:
        posting = Posting("once", (Line("A", 10),))
        first, again = post(race.book, posting), post(race.book, posting)
        assert (first.replayed, again.replayed) == (False, True)
        assert again.entries == first.entries
        with pytest.raises(KeyReused):
            post(race.book, Posting("once", (Line("A", 11),)))
        assert race.balance() == 110


# -- a caller that dies ---------------------------------------------------------------------------------------------


@each(RACED)
def test_of_a_crashed_caller_nothing_is_left(slug: str, store: str) -> None:
    claims = find(slug).withstands >= {Hazard.CONTENTION, Hazard.CRASH}
    if getattr(
        dependencies.factory_of(slug), "renews", False
    ):  # a caller is a thread here: its renewal lives on
        claims = claims and Hazard.RENEWAL_LIVES in find(slug).withstands
    waits = {} if claims else {"timeout": 0.05}
    with Race(slug, store=store, lease=scaled.lease_of(slug), **waits) as race:
        a, b = race.worker("A", +10), race.worker("B", +20)
        a.runs_to("think").dies()
        if claims:
            b.finishes()  # at once, or when the lease of the dead is over
        else:
            if b.tries("the end") is not State.DONE:
                b.dies()  # it may wait for ever
        assert not wrong(race, None)
        assert not claims or (race.kept() and race.balance() == 120)


# -- a posting that is refused --------------------------------------------------------------------------------------


@each([(slug, store) for slug, store in CELLS if slug not in STUCK])
def test_a_refusal_leaves_nothing_behind(slug: str, store: str) -> None:
    with Race(slug, store=store, floor=0) as race:
        with pytest.raises(Refused):
            post(race.book, Posting("too-much", (Line("A", -101),)))
        with pytest.raises(Refused):
            post(race.book, Posting("half", (Line("B", -10), Line("A", -101))))
        assert (race.balance("A"), race.balance("B")) == (100, 100)
        next_one = race.worker("next", -100)
        assert next_one.tries("the end") is State.DONE, "it has to wait for who was refused"
        assert next_one.answer
        assert (race.balance("A"), race.balance("B")) == (0, 100)
        assert race.kept()


# -- each case can fail ---------------------------------------------------------------------------------------------


class Careless(NoLock):
    """It writes before it looks, remembers no key, and leaves half a posting behind."""

    slug = "careless"

    def apply(self, posting: Posting):  # type: ignore[no-untyped-def]
        for number, line in enumerate(posting.lines):
            done = super().apply(Posting(f"{posting.key}-{number}", (line,)))
        return done


@pytest.fixture
def careless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STRATEGIES, Careless.slug, Careless)


@pytest.mark.usefixtures("careless")
@pytest.mark.parametrize(
    "case",
    [
        lambda: test_a_claim_of_contention_keeps_the_balance("careless", "postgres", False),
        lambda: test_a_repeated_key_is_one_posting("careless", "postgres"),
        lambda: test_a_refusal_leaves_nothing_behind("careless", "postgres"),
    ],
    ids=["contention", "repeat", "refusal"],
)
def test_a_careless_one_is_found_out(case) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises((AssertionError, KeyTaken, pytest.fail.Exception)):
        case()


def test_one_that_claims_too_much_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock without a lease survives no crash: the next caller waits for ever, and the test sees that."""
    setnx = find("setnx")
    monkeypatch.setattr(setnx, "withstands", setnx.withstands | {Hazard.CRASH})
    monkeypatch.setattr("tests.ledger.race.worker.PATIENCE", 0.2)
    with pytest.raises(AssertionError, match="B did not come to"):
        test_of_a_crashed_caller_nothing_is_left("setnx", "postgres")


def test_the_control_is_among_them() -> None:
    assert (CONTROL, "postgres") in CELLS
    assert {slug for slug, _ in CELLS} >= {
        slug for slug, each in STRATEGIES.items() if not issubclass(each, Locked)
    }
