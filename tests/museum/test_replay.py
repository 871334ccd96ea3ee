"""An order of the page is replayed by its id; an id without an order is reported."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor

import pytest

from lost_update_lab import Result
from museum import data, replay


def committed() -> str:
    (case,) = [each for each in data.read()["results"] if each["case"] == "01-voucher"]
    return replay.named(case["case"], 1, case["broken"][0]["id"])


def played(name: str) -> tuple[str, str]:
    result: Result = replay.replayed(name)
    return result.verdict, result.id


@pytest.mark.deep
def test_a_committed_order_breaks_again(a_lane: ProcessPoolExecutor) -> None:
    name = committed()
    assert a_lane.submit(played, name).result() == ("violated", name.split("/", 2)[2])


@pytest.mark.parametrize("name", ["", "01-voucher", "01-voucher/9/v/1", "99-none/1/v/1", "01-voucher/x/v/1"])
def test_a_replay_id_without_an_order_is_reported(a_lane: ProcessPoolExecutor, name: str) -> None:
    with pytest.raises(LookupError, match="names no order"):
        a_lane.submit(played, name).result()
