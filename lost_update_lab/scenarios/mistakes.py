"""What is wrong with a scenario itself, found before any schedule is explored: each one sentence, with the remedy."""

from __future__ import annotations

import traceback
from typing import Any

import psycopg

from lost_update_lab.model.subject import Judgement
from lost_update_lab.scenarios.exploration import Opened
from lost_update_lab.scenarios.judging import VIOLATED
from lost_update_lab.scenarios.lines import is_own
from lost_update_lab.scenarios.scenario import Mistake
from lost_update_lab.scenarios.serial import SerialOrders

_OPEN = """
SELECT left(query, 60) FROM pg_stat_activity
WHERE datname = current_database() AND state LIKE 'idle in transaction%' AND backend_xid IS NOT NULL
"""


def after_setup(connection: psycopg.Connection[Any], the_same: bool) -> None:
    """Is what the setup did there for everybody? Raises Mistake."""
    if row := connection.execute(_OPEN).fetchone():
        raise Mistake(
            f"the setup commits nothing: its transaction is still open (last: {row[0]}), so no worker sees what it "
            "did. Commit it, or connect with autocommit=True"
        )
    if the_same:
        raise Mistake(
            "the setup commits nothing: the servers hold what they held before. Commit it; under pytest-django use "
            "@pytest.mark.django_db(transaction=True)"
        )


def raises_at_once(opened: Opened) -> None:
    """Does a worker fail in every serial order? Then nothing is tried. Raises Mistake."""
    with opened.stage() as (stage, system):
        serial = SerialOrders(stage, system)
        found = serial.all()
    for index, name in enumerate(opened.scenario.names.values()):
        errors = [each.observed.endings[index].error for each in found]
        error = errors[0] if errors else None
        if error is not None and all(errors) and not isinstance(error, opened.scenario.refusals or ()):
            raise Mistake(
                f"{name} fails in every order, also when nobody else is there: {_told(error)}. Mend that first: as it "
                "is, nothing of it is tried"
            ) from error
        if all(each.observed.stuck and each.observed.endings[index].waiting for each in found):
            raise Mistake(f"{name} waits for ever, also when nobody else is there: nothing of it is tried")


def _told(error: BaseException) -> str:
    frames = [each for each in traceback.extract_tb(error.__traceback__) if is_own(each.filename)]
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return (
        f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}{where}"
    )


def wrong_invariants(opened: Opened) -> None:
    """Does an invariant fail without any concurrency, from the beginning on? Raises Mistake."""
    if not (opened.scenario.invariants or opened.scenario.always):
        return
    with opened.stage() as (stage, system):
        serial = SerialOrders(stage, system)
        nobody, all_of_them = serial.run(()), serial.all()
        judge = opened.judge
        if not _breaks(judge(nobody.observed)) or any(
            invariant.results for invariant in opened.scenario.invariants
        ):
            return
        if all(_breaks(judge(each.observed)) for each in all_of_them):
            raise Mistake(
                f"the invariant ({judge(nobody.observed).sentences[0]}) is false at the start, and after every serial "
                "order: mend it, or what the setup puts there"
            )


def _breaks(judgement: Judgement) -> bool:
    return judgement.word == VIOLATED
