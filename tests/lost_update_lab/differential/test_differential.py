"""Programs that a random generator writes: the search leaves out no end that the search without reductions comes to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.commands import LOOKS_AT_CLOCK
from lost_update_lab.schedule import enabled
from lost_update_lab.search import independence
from lost_update_lab.under_test.servers import Servers
from tests.lost_update_lab.differential.commands import Program, key, sql
from tests.lost_update_lab.differential.comparison import CUT_SHORT, REFUSED, Difference, compared
from tests.lost_update_lab.differential.families import FAMILIES, Faults
from tests.lost_update_lab.differential.writer import Case, case
from tests.lost_update_lab.test_reduction import without_the_worker

#: s for a search of the referee: a larger one is cut short, and what it has found by then is compared
BUDGET = 6.0
#: … in the short form
SHORT_BUDGET = 2.0

ServersOf = Callable[[str], Servers]


@pytest.fixture
def servers(request: pytest.FixtureRequest) -> ServersOf:
    """Those of a family, by its `database`."""

    def of(database: str) -> Servers:
        if database:
            return Servers(request.getfixturevalue("address"), "")
        return Servers(*request.getfixturevalue("scenario_urls"))

    return of


def compare_all(cases: Iterable[tuple[str, int]], servers: ServersOf, budget: float) -> None:
    """Fails with each difference, and how to see it again. At least half of the cases (family, seed) have to be
    compared."""
    differ, left_out, all_of = [], [], list(cases)
    for name, seed in all_of:
        found = compared(case(name, seed), servers(FAMILIES[name].database), budget=budget)
        again = f'python -m tests.lost_update_lab.differential "{name}" {seed}'
        if isinstance(found, Difference):
            differ.append(f"{found}\nAgain: {again}")
        elif found.startswith((REFUSED, CUT_SHORT)):
            left_out.append(f"{found}\nAgain: {again}")
    assert not differ, "\n\n".join(differ)
    assert len(left_out) <= len(all_of) / 2, "\n".join(left_out)


@pytest.mark.deep
def test_a_program_of_each_family_loses_no_end(servers: ServersOf) -> None:
    compare_all(((name, 0) for name in FAMILIES), servers, SHORT_BUDGET)


@pytest.mark.deep(short=False)
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", FAMILIES)
def test_the_programs_of_a_family_lose_no_end(servers: ServersOf, name: str) -> None:
    compare_all(((name, seed) for seed in range(1, FAMILIES[name].seeds)), servers, BUDGET)


# -- what was missed once -----------------------------------------------------------------------------------------


def made(name: str, *programs: Program, faults: Faults = ()) -> Case:
    family = FAMILIES[name]
    return Case(family, family.setups[0], tuple((each,) for each in programs), faults)


BY_OWN = key("INCRBY", "count", "{own}", keep="n")
ADDS_ITS_TIME = ("look", "time"), key("ZADD", "z", "{unix}", "{own}")
LOOKS_AND_TELLS = ("look", "time"), ("set",), key("ZADD", "z", "{unix}", "{own}")
ASKS_TWICE = (
    key("INCR", "first"),
    ("asks",),
    ("if", (key("SET", "told at first", 1),)),
    key("INCR", "second"),
    ("asks",),
    ("if", (key("SET", "told", 1),)),
)
MISSED = {
    # had A died before it, B would have ended everything, and no replica would have taken over
    "a crash after a failover": made(
        "two faults",
        (("finally", (BY_OWN,), (BY_OWN,)),),
        (key("SET", "count", "{n+own}"),),
        faults=(Fault.CRASH, Fault.FAILOVER),
    ),
    # a thread that put off its look went on before all steps of the worker's other thread, or after all of them
    "a look between two steps of another thread": made(
        "clocks of threads", (("gather", (LOOKS_AND_TELLS, ASKS_TWICE)),), ADDS_ITS_TIME
    ),
}


@pytest.mark.deep
@pytest.mark.parametrize("name", MISSED)
def test_an_end_that_was_missed_once_is_found(servers: ServersOf, name: str) -> None:
    found = compared(MISSED[name], servers(""))
    assert "the same" in str(found), found


# -- a reduction that is wrong is found ---------------------------------------------------------------------------


def never_later(world: Any, steppers: Any) -> list[Any]:
    """A wrong reduction: whoever has not looked at a clock at once does so only when there is nothing else to do."""
    return [task for task in steppers if world.full and task.op is LOOKS_AT_CLOCK and not task.fresh]


READS_AND_WRITES = (
    key("GET", "count", keep="n"),
    key("SET", "count", "{n+own}"),
    key("GET", "count", keep="n"),
)
LOOKS_AND_WRITES = (
    ("look", "datetime"),
    sql("UPDATE account SET n = n + {own}, at = '{at}' WHERE id = 1 AND at < '{at}'", "done"),
)
CONTROLS = {
    "dependence": (
        made("in Redis", READS_AND_WRITES, READS_AND_WRITES),
        independence,
        "depends_on",
        without_the_worker,
    ),
    "looks": (
        made("clocks and rows", LOOKS_AND_WRITES, LOOKS_AND_WRITES),
        enabled,
        "_looks_later",
        never_later,
    ),
}


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("name", CONTROLS)
def test_a_wrong_reduction_is_found(servers: ServersOf, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    program, module, function, wrong = CONTROLS[name]
    assert "the same" in str(compared(program, servers("")))
    monkeypatch.setattr(module, function, wrong)
    found = compared(program, servers(""))
    assert isinstance(found, Difference)
    assert found.missed
    assert "missed: " in str(found)
