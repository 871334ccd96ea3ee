"""Every lock through every case. A lock must fail the cases that its own file says it fails, and must pass the rest."""

from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import pytest

from locks import LOCKS, LockError
from locks.hazards import Hazard
from tests.contract import (  # noqa: F401  # noqa: F401
    cases_crashes,
    cases_disasters,
    cases_exclusion,
    cases_fencing,
    cases_leases,
    cases_releases,
    cases_repeats,
    cases_servers,
    cases_waiting,
)
from tests.contract.arena import Arena
from tests.contract.case import CASES
from tests.contract.controls import CONTROLS
from tests.contract.promises import Broken
from tests.contract.quiet import SUBJECTS

#: cases that measure time (side by side, a busy machine would make them late), or that touch a whole server
ALONE = {"wait-time", "noscript", "fencing", "typed-errors", "server-restart", "failover"}

CELLS = [
    pytest.param(case, lock, id=f"{slug}-{case}")
    for case in CASES
    for slug, lock in SUBJECTS.items()
    if case not in lock.not_applicable
]


class Ahead:
    """Runs cells. The first cell of a case starts all its selected cells, six at a time, because they mostly wait."""

    def __init__(self, arena: Arena, selected: list[tuple[str, Any]], pool: Executor) -> None:
        self._arena, self._selected, self._pool = arena, selected, pool
        self._begun: dict[tuple[str, Any], Future[None]] = {}

    def outcome(self, case: str, lock: Any) -> None:
        """Return, or raise what the case raised."""
        if case in ALONE:
            CASES[case](self._arena, lock)
            return
        if (case, lock) not in self._begun:
            for each in self._selected:
                if each[0] == case:
                    self._begun[each] = self._pool.submit(CASES[case], self._arena, each[1])
        self._begun[case, lock].result()


@pytest.fixture(scope="session")
def ahead(arena: Arena, request: pytest.FixtureRequest) -> Iterator[Ahead]:
    tests = [item for item in request.session.items if getattr(item, "originalname", "") == "test_lock"]
    selected = [(item.callspec.params["case"], item.callspec.params["lock"]) for item in tests]
    with ThreadPoolExecutor(max_workers=6) as pool:
        yield Ahead(arena, selected, pool)
        pool.shutdown(cancel_futures=True)  # after Ctrl-C, or with -x


@pytest.mark.parametrize(("case", "lock"), CELLS)
def test_lock(case: str, lock: Any, ahead: Ahead) -> None:
    if case not in lock.fails:
        ahead.outcome(case, lock)
        return
    with pytest.raises((Broken, LockError)) as broken:  # an unexpected error breaks a promise too
        ahead.outcome(case, lock)
    print(f"{lock.slug} fails {case}, as its page says ({lock.fails[case]}): {broken.value}")


@pytest.mark.parametrize("case", CONTROLS)
def test_control_is_found_out(case: str, arena: Arena) -> None:
    with pytest.raises(Broken):
        CASES[case](arena, CONTROLS[case])


@pytest.mark.parametrize("lock", LOCKS.values(), ids=LOCKS)
def test_tables_are_sound(lock: Any) -> None:
    assert lock.fails.keys() | lock.not_applicable.keys() <= CASES.keys()
    assert not lock.fails.keys() & lock.not_applicable.keys()
    assert all((lock.fails | lock.not_applicable).values()), "each has its reason"
    assert "release-repeated" not in lock.fails or Hazard.LOST_REPLY not in lock.withstands


def test_each_case_can_fail() -> None:
    """Either a lock of the catalogue or a control fails it."""
    seen_to_fail = {case for lock in LOCKS.values() for case in lock.fails} | CONTROLS.keys()
    assert seen_to_fail == CASES.keys()
