"""What workers share by mistake, as a test makes it outside of them: objects, a loop's variable, a pool of threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from lost_update_lab import Mistake, Result, worker
from lost_update_lab.runs.look import is_a_clients
from lost_update_lab.runs.modules import state
from lost_update_lab.scenarios.race import Race
from tests.lost_update_lab.scenarios.shop import one_voucher, redeem, redeem_locked

Trial = Callable[..., Result]


@dataclass
class Voucher:
    """A row that was read once."""

    uses: int


def use(voucher: Voucher, sql: Any) -> None:
    if voucher.uses:
        voucher.uses -= 1
        sql.execute("UPDATE voucher SET uses = %s", [voucher.uses])


def redeem_locked_by_ann(sql: Any) -> str:
    return redeem_locked("XMAS", 1, sql)


@pytest.mark.deep
def test_an_object_that_the_workers_share(trial: Trial) -> None:
    shared = Voucher(uses=1)
    told = r"only the first run sent 'UPDATE voucher .* \(Ann's voucher\.uses, Bob's voucher\.uses\)"
    with pytest.raises(Mistake, match=told):
        trial([worker("Ann", use, shared), worker("Bob", use, shared)], setup=one_voucher)


def look_once(voucher: Voucher, sql: Any) -> None:
    if voucher.uses:
        voucher.uses -= 1
        sql.execute("SELECT uses FROM voucher")


def test_an_object_that_keeps_the_workers_from_looking(trial: Trial) -> None:
    shared = Voucher(uses=1)
    result = trial([worker("Ann", look_once, shared), worker("Bob", look_once, shared)], setup=one_voucher)
    assert result.verdict == "inconclusive"
    assert "share what is changed in memory: Ann's voucher.uses, Bob's voucher.uses" in result.cause
    assert "an object that was loaded before is one object for all workers" in result.remedy


def test_an_object_that_decides_later(trial: Trial) -> None:
    box = {"voucher": Voucher(uses=5)}

    def uses(sql: Any) -> None:
        use(box["voucher"], sql)

    with pytest.raises(Mistake, match=r"survives: A's box\['voucher'\].uses, B's box\['voucher'\].uses\."):
        trial([uses, uses], setup=one_voucher)


def test_the_variable_of_a_loop(scenario_urls: tuple[str, str]) -> None:
    race = Race("loop")
    for name in ("Ann", "Bob"):
        race.worker(name, lambda sql: redeem("XMAS", name, sql))  # type: ignore[arg-type]  # noqa: B023
    with pytest.raises(Mistake, match="Ann's function was given while name was 'Ann', and uses 'Bob'"):
        race.explore()


@pytest.mark.deep
def test_a_variable_that_is_filled_later_is_none_of_a_loop(trial: Trial) -> None:
    code = ""
    workers = [worker("Ann", lambda sql: redeem_locked(code, 1, sql))]
    code = "XMAS"
    workers.append(worker("Bob", redeem_locked, code, 2))
    assert trial(workers, setup=one_voucher).kept


@pytest.mark.deep
def test_a_class_that_cannot_be_hashed(trial: Trial) -> None:
    class Equal(type):
        def __eq__(cls, other: object) -> bool:
            return cls is other

        __hash__ = None  # type: ignore[assignment]

    class Odd(metaclass=Equal):
        __slots__ = ("value",)

    assert not is_a_clients(Odd)
    globals()["odd"] = Odd()
    odd.value = 7  # type: ignore[name-defined]  # noqa: F821
    try:
        assert state(__name__)[f"{__name__}.odd.value"] == "7"
        assert trial([redeem_locked_by_ann] * 2, setup=one_voucher, control=False).kept
    finally:
        del globals()["odd"]


def test_a_setup_that_leaves_a_transaction_open_blocks_nobody(trial: Trial) -> None:
    open_: list[Any] = []

    def forgets() -> None:
        one_voucher()
        open_.append(psycopg.connect(os.environ["DATABASE_URL"]))
        open_[0].execute("LOCK TABLE voucher; INSERT INTO redemption (customer) VALUES (1)")

    with pytest.raises(Mistake, match="its transaction is still open"):
        trial([worker("Ann", redeem, "XMAS", 1), worker("Bob", redeem, "XMAS", 2)], setup=forgets)
    with pytest.raises(psycopg.OperationalError):
        open_[0].execute("SELECT 1")
