"""A machine so slow that the judge itself keeps the worker inside beyond its lease: that shows nothing of the lock."""

import signal
import time
from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest

from loadtest.faults.cell import Cell
from loadtest.faults.hazards.adversary import Adversary
from loadtest.faults.hazards.connections import LEFT, ConnectionExhaustion
from loadtest.faults.hazards.overrun import Overrun
from loadtest.faults.hazards.renewal_lives import RenewalLives
from loadtest.faults.play import play
from loadtest.faults.scene.scene import EASY_LEASE, ENTER
from loadtest.faults.scene.site import private_servers
from loadtest.faults.workers.crew import Pool
from loadtest.trials.case import JudgedCase
from loadtest.verdict.words import Word
from locks.hazards import Hazard

#: under a lease that the judge outlasts
LEASED = "token", "fair-lock", "centre-lock", "redlock"
#: without one: whatever keeps them right does so however long the judge takes
UNLEASED = "select-for-update", "optimistic-version", "advisory-lock", "redis-watch"


#: third-party locks, with a lease of a second whatever the book says
SHORT, RENEWED = (f"tests.loadtest.third_party:{name}" for name in ("of_a_second", "of_a_second_renewed"))


class HeldUp(Adversary):
    """Strikes nothing, and takes its time: the worker inside goes on when its lease is over and others wrote."""

    slug = "held-up"
    word = Hazard.CONNECTIONS

    def strike(self, scene: Any) -> None:
        if victim := scene.victim():
            scene.prove("something quick")
            over = time.monotonic() + scene.longest_lease()
            scene.wait(scene.rush(), 2 * scene.lease)
            while time.monotonic() < over:
                victim.hears(over - time.monotonic())
            scene.go_on(victim)


class HeldUpForTwoSeconds(HeldUp):
    """The book has a lease of ten."""

    slug = "held-up-for-two-seconds"
    lease = EASY_LEASE

    def strike(self, scene: Any) -> None:
        if victim := scene.victim():
            scene.prove("something quick")
            over = time.monotonic() + 2
            scene.wait(scene.rush(), 2)
            while time.monotonic() < over:
                victim.hears(over - time.monotonic())
            scene.go_on(victim)


class Outlasts(Overrun):
    """An overrun of a lock that is renewed: its worker has all the time that it needs."""

    slug = "outlasts"
    lasts_here = 1.2  # leases

    def lease_of(self, strategy: str) -> float:
        return EASY_LEASE / 5

    def strike(self, scene: Any) -> None:
        if victim := scene.victim():
            scene.pulse(victim)
            self.disturb(scene, victim)
            scene.wait(scene.rush(), self.lasts_here * scene.lease)
            scene.prove("it was inside for longer than its lease")
            scene.go_on(victim, outlasts=True)

    def disturb(self, scene: Any, victim: Any) -> None: ...


class OutlastsStarved(Outlasts):
    """… on a machine that does not let its process run meanwhile."""

    slug = "outlasts-starved"

    def disturb(self, scene: Any, victim: Any) -> None:
        victim.stop()
        scene.wait(scene.rush(), self.lasts_here * scene.lease)
        victim.signal(signal.SIGCONT)


class OutlastsUnrenewed(Outlasts):
    """… and its renewal thread has ended, on a machine that is quick, or counts as quick."""

    slug = "outlasts-unrenewed"

    def disturb(self, scene: Any, victim: Any) -> None:
        scene.guard.punctual = 5.0
        victim.tells("silence")
        assert victim.hears(ENTER)[1]


class RenewalLivesStarved(RenewalLives):
    """… in a process that is stopped until its lease is over."""

    slug = "renewal-lives-starved"

    def strike(self, scene: Any) -> None:
        super().strike(scene)
        assert self.orphaned
        self.orphaned.stop()
        scene.wait(scene.rivals, EASY_LEASE)
        self.orphaned.signal(signal.SIGCONT)


class Played(dict[str, JudgedCase]):
    """By its name, what a cell came to. It is played when it is first asked for."""

    def __init__(self, site: Any, pool: Pool) -> None:
        self.site, self.pool, self.once = site, pool, Event()
        self.once.set()
        cells = [
            Cell(slug, HeldUpForTwoSeconds if ":" in slug else HeldUp)
            for slug in (*LEASED, *UNLEASED, SHORT, RENEWED)
        ]
        cells += [Cell("watchdog-mended", each) for each in (Outlasts, OutlastsStarved, OutlastsUnrenewed)]
        cells.append(Cell("watchdog", RenewalLivesStarved))
        self.cells = {
            each.strategy if issubclass(each.hazard, HeldUp) else each.hazard.slug: each for each in cells
        }

    def __missing__(self, name: str) -> JudgedCase:
        cell = self.cells[name]
        (self[name],) = play([cell], self.site, self.pool, lambda _: Word.LOST, self.once)[cell]
        return self[name]


@pytest.fixture(scope="module")
def results(django_db_setup: None, django_db_blocker: Any) -> Iterator[Played]:
    with django_db_blocker.unblock(), private_servers() as site:
        pool = Pool()
        try:
            yield Played(site, pool)
        finally:
            pool.close()


@pytest.mark.deep_after(2)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("slug", [*LEASED, SHORT])
def test_a_worker_held_inside_beyond_its_time_leaves_without_a_write(slug: str, results: Played) -> None:
    result = results[slug]
    assert result.word == Word.INCONCLUSIVE, result.verdict.cause
    assert "for as long as its lease (Overdue: " in result.verdict.cause
    assert not result.verdict.fired
    assert result.books
    assert result.witness
    calls = result.witness.history.calls
    (left,) = [each for each in calls if "Overdue" in each.error]
    written = sum(amount for each in calls if each is not left for _, amount in each.legs)
    assert result.books.final == result.books.opening + written


@pytest.mark.deep_after(2)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("slug", [*UNLEASED, RENEWED])
def test_without_a_lease_or_with_a_renewed_one_no_holder_is_too_late(slug: str, results: Played) -> None:
    assert results[slug].word == Word.KEPT, results[slug].verdict.cause


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("hazard", "word"),
    [(Outlasts, Word.KEPT), (OutlastsStarved, Word.INCONCLUSIVE), (OutlastsUnrenewed, Word.LOST)],
)
def test_a_renewal_that_the_machine_did_not_let_run_shows_nothing(
    hazard: type[Outlasts], word: Word, results: Played
) -> None:
    """22,020 were `lost` under `watchdog` on a machine that was busy: its renewal came too late."""
    result = results[hazard.slug]
    assert result.word == word, result.verdict.cause
    starved = "the machine gave worker " in result.verdict.cause
    assert starved == (word == Word.INCONCLUSIVE)
    assert bool(result.verdict.fired) == (word != Word.INCONCLUSIVE)


@pytest.mark.timeout(300)
def test_an_orphaned_renewal_that_the_machine_did_not_let_run_shows_nothing(
    results: Played,
) -> None:
    """`watchdog` came out as kept: its renewal was late, so the others waited for one lease only."""
    result = results[RenewalLivesStarved.slug]
    assert result.word == Word.INCONCLUSIVE, result.verdict.cause
    assert "too little time to renew" in result.verdict.cause


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_most_connections_are_taken_before_anybody_is_inside(
    django_db_setup: None, django_db_blocker: Any
) -> None:
    """All of them take seconds, and on a busy machine more than a lease."""
    hazard = ConnectionExhaustion()
    with django_db_blocker.unblock(), private_servers() as shared, hazard.site(shared) as site:
        hazard.prepare(site)
        before = len(hazard.taken)
        assert "too many clients" in hazard.event(site)
        assert LEFT - 10 <= len(hazard.taken) - before <= LEFT
