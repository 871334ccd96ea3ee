"""A hazard that is added is claimed by no strategy: a claim is listed by its author, never subtracted from all.

The lab is loaded in a process of its own in which `locks.hazards` has one word more.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ledger.strategies import STRATEGIES
from tests.test_house import ROOT

CLAIMANTS = """
import sys, types, django
from pathlib import Path

source = Path("locks/hazards.py").read_text()
longer = source.replace("class Hazard(StrEnum):", "class Hazard(StrEnum):\\n    METEOR = 'meteor'", 1)
assert longer != source
module = types.ModuleType("locks.hazards")
exec(compile(longer, "locks/hazards.py", "exec"), module.__dict__)
sys.modules["locks.hazards"] = module
sys.modules["loadtest.faults.hazards.meteor"] = types.ModuleType("nobody does it yet")

from locks import LOCKS
{also}
django.setup()
from ledger.strategies import STRATEGIES

METEOR = module.Hazard.METEOR
def claims(each):
    return {*each.withstands, *(getattr(each, "withstands_on_mariadb", None) or ())}

print(*sorted({slug for slug, each in {**LOCKS, **STRATEGIES}.items() if METEOR in claims(each)}))
"""


def claimants(also: str = "") -> list[str]:
    """Return the strategies that claim a hazard that was just added. `also`: run once the locks are loaded."""
    done = subprocess.run(
        [sys.executable, "-c", CLAIMANTS.replace("{also}", also)],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "ledger.settings"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.deep
def test_a_new_hazard_is_claimed_by_nobody() -> None:
    assert claimants() == []


def test_a_claim_that_is_subtracted_is_seen() -> None:
    """By the lock itself and by the strategy that is made of it."""
    subtracts = "LOCKS['token'].withstands = frozenset(module.Hazard) - {module.Hazard.PAUSE}"
    assert "token" in claimants(subtracts)


def test_who_states_claims_of_its_own_inherits_none_for_mariadb() -> None:
    """`fenced-at-write` claimed there what `fenced` does: the explorer found money lost by a clock that jumps."""
    for slug in ("fenced-at-write", "row-lock-nowait", "optimistic-value"):
        found = STRATEGIES[slug]
        assert found.claims_on("mariadb") == found.withstands
    assert STRATEGIES["fenced"].claims_on("mariadb") < STRATEGIES["fenced"].withstands
