"""What is wrong with a scenario itself, found before any schedule is explored. Each is one sentence with its remedy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lost_update_lab.gates.invariant_clock import BY_TIMES_IN_ROWS, InvariantClock
from lost_update_lab.gates.recorded_calls import RECORD_IT, RecordedCalls
from lost_update_lab.model.errors import (
    GATE_IT,
    KEEPS_STATE,
    MORE_TIME,
    ON_ONE_HOST,
    REPORT_IT,
    SHORTER,
    WHAT_ELSE,
    Broken,
    Elsewhere,
)
from lost_update_lab.model.system import Judgement, places_of
from lost_update_lab.runs.in_time import Unending, within
from lost_update_lab.scenarios.exploration import Opened
from lost_update_lab.scenarios.rising_keys import check_keys
from lost_update_lab.scenarios.serial import Serial, SerialOrders
from lost_update_lab.scenarios.without_gate import instead
from lost_update_lab.telling.lines import SourceLine, line_among, line_of
from lost_update_lab.telling.narrative import shortened
from lost_update_lab.under_test.of_django import HINT, is_configured
from lost_update_lab.under_test.operations import VIOLATED
from lost_update_lab.under_test.scenario import Mistake

#: the engine's remedy → the remedy for a scenario
_REMEDIES = {
    MORE_TIME: "give it more time: budget=SECONDS",
    SHORTER: "shorter leases or polls",
    ON_ONE_HOST: "use what all processes share: a lock in the database, or in Redis",
    REPORT_IT: "a fault of the explorer: please report it, with the operations",
    WHAT_ELSE: WHAT_ELSE.replace("the strategy", "the operations"),
    KEEPS_STATE: "look for a global, a cache, a class attribute that the operation changes: each worker is a process "
    "that has just begun, so make that anew for each call",
}

#: seconds for the setup, at least
SETUP_WITHIN = 60.0


def remedy_of(text: str) -> str:
    if text == GATE_IT:
        return instead(GATE_IT)
    return _REMEDIES.get(text, text)


def not_explored(error: Broken) -> Mistake:
    """The engine cannot vouch for these operations."""
    seen = f"; {error.before}" if isinstance(error, Elsewhere) and error.before else ""
    return Mistake(f"the operations cannot be explored: {error}{seen}. The remedy: {remedy_of(error.remedy)}")


#: what asyncio says
_SIGNALS = "signal only works in main thread"
IN_A_THREAD = (
    "{} handles a signal: {}. Workers are threads of this process, and Python lets its main thread alone handle "
    "signals. Where a command must not take too long, use a time-out of the server (statement_timeout, lock_timeout) "
    "or of the client (socket_timeout): these are explored, too"
)
_OTHER_LOOP = "is bound to a different event loop"
ONE_LOOP = (
    "{} uses an object of asyncio that another worker has used before: {}. Workers stand for processes, each with an "
    "event loop of its own, and such a lock keeps no other process out. Make it anew in each call, and let the "
    "database or Redis protect what they share"
)


def set_up(setup: Callable[[], Any], budget: float) -> None:
    """Raises Mistake if the setup fails, or does not end."""
    seconds = max(SETUP_WITHIN, budget)
    try:
        within(seconds, setup)
    except Mistake:
        raise
    except Unending as unending:
        raise Mistake(
            f"the setup has not ended after {seconds:.0f} s: {unending}. It has to commit what it does, and must not "
            "wait for itself. Only if it ends, give it more time: budget=SECONDS"
        ) from None
    except Exception as error:
        raise Mistake(
            f"the setup raised {told_at(error, line_of(error))}. It is called without "
            "arguments (but `sql` and `redis`), before any worker, and has to commit what it puts there"
        ) from error


def after_setup(left_open: str, the_same: bool, of_django: bool) -> None:
    """Can every session see what the setup did? `left_open`: the last command of a transaction that has not ended:
    it is ended, as whatever comes next would wait for its locks. `of_django`: the scenario is in the database of a
    Django project. Raises Mistake."""
    if left_open:
        raise Mistake(
            f"the setup commits nothing: its transaction is still open (last: {left_open}), so no worker sees what it "
            "did. Commit it, or connect with autocommit=True"
        )
    if the_same:
        raise Mistake(
            "the setup commits nothing: the servers hold what they held before. Commit it; if all that the operations "
            "need is there already, leave the setup away" + HINT * (is_configured() and not of_django)
        )


def examine(opened: Opened, serial: SerialOrders) -> None:
    """What the serial orders show about the scenario. Raises Mistake."""
    found = serial.all()
    _works_at_all(opened, found)
    check_keys(found, opened.database.tables)
    laws = (*opened.scenario.invariants, *opened.scenario.always)
    # before any worker has begun there are no results
    if laws and not any(law.takes_results for law in laws):
        _holds_at_all(_nobody(serial), found)


def _nobody(serial: SerialOrders) -> Serial:
    """The opening state. Raises Mistake."""
    try:
        return serial.run(())
    except Mistake as mistake:
        raise Mistake(
            f"{mistake}. Here it was asked about what the setup left, before any worker"
        ) from mistake


def _works_at_all(opened: Opened, found: Sequence[Serial]) -> None:
    """Does a worker fail, or wait, in every serial order? Then the scenario tries nothing."""
    for index, name in enumerate(opened.scenario.names.values()):
        endings = [each.observed.endings[index] for each in found]
        errors = [ending.error for ending in endings]
        if (error := errors[0]) and all(errors) and not isinstance(error, opened.scenario.refusals or ()):
            if isinstance(error, Mistake):
                raise error
            for words, meaning in ((_OTHER_LOOP, ONE_LOOP), (_SIGNALS, IN_A_THREAD)):
                if words in str(error):
                    raise Mistake(
                        meaning.format(name, told_at(error, line_among(places_of(error))))
                    ) from error
            none = "" if opened.scenario.setups else ", and the scenario has no setup"
            raise Mistake(
                f"{name} fails in every order, even when it runs alone: {told_at(error, line_among(places_of(error)))}"
                f"{none}. Fix that first: nothing was tried"
            ) from error
        if all(ending.waiting for ending in endings):
            where = f", in {shortened(endings[0].waits_in, 100)!r}" if endings[0].waits_in else ""
            raise Mistake(
                f"{name} waits for ever, even when it runs alone{where}: nothing was tried. The setup must provide "
                "what it waits for, unless that is a lock: then another connection of its own holds it"
            )


def told_at(error: BaseException, line: SourceLine | None) -> str:
    """`ZeroDivisionError: division by zero (shop.py:31: total / 0)`"""
    text = str(error).strip()
    told = f"{type(error).__name__}: {text.splitlines()[0].rstrip('.')}" if text else type(error).__name__
    return f"{told} ({line}: {line.source})" if line else told


def _holds_at_all(nobody: Serial, found: Sequence[Serial]) -> None:
    """Does an invariant fail from the beginning, and in every serial order?"""
    if _breaks(nobody.judgement) and all(_breaks(each.judgement) for each in found):
        if told := RecordedCalls.told():
            raise Mistake(f"{told}, so it is false before anything is tried. What would help: {RECORD_IT}")
        asks = "; ".join(InvariantClock.asked)
        raise Mistake(
            f"the invariant ({nobody.judgement.sentences[0]}) is false at the start, and after every serial "
            "order: mend it, or what the setup puts there"
            + (
                f". It asks for the time ({asks}), which is not the workers': {BY_TIMES_IN_ROWS}"
                if asks
                else ""
            )
        )


def _breaks(judgement: Judgement) -> bool:
    return judgement.word == VIOLATED
