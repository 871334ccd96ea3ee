"""A gate that asks Valkey only about takers is asked in its cells."""

from typing import Any

import pytest

from ledger.strategies import STRATEGIES
from loadtest.faults.cell import Cell
from loadtest.faults.hazards import ADVERSARIES
from loadtest.faults.matrix import MatrixPlan, matrix
from loadtest.faults.scene.site import private_servers


class Few(MatrixPlan):
    def cells(self) -> list[Cell]:
        return [
            Cell(s, ADVERSARIES[h])
            for h in ("server-restart", "slow-network")
            for s in ("no-lock", "redis-gate")
        ]


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_a_hazard_of_valkey_strikes_a_gate_that_was_asked(
    django_db_setup: None, django_db_blocker: Any
) -> None:
    with django_db_blocker.unblock(), private_servers() as site:
        cells = list(matrix(Few(strategies=(), hazards=(), seed=7), site))
    gates = {each["hazard"]: each for each in cells if each["strategy"] == "redis-gate"}
    assert ":gate = " in gates["server-restart"]["fired"]["server-restart"]
    for cell in gates.values():
        assert cell["verdict"] == "kept", cell["cause"]
        assert cell["final"] < cell["opening"]


def test_all_others_deposit() -> None:
    withdraw = {each for each in STRATEGIES if Cell(each, ADVERSARIES["pause"]).case().floors}
    assert withdraw == {"redis-gate"}
