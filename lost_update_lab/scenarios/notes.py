"""What a result says besides its verdict: what was not compared, and what was let pass."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lost_update_lab.gates.recorded_calls import RecordedCalls
from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.system import UNBROKEN
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.scenarios.exploration import Opened
from lost_update_lab.scenarios.judging import ABORTED, BETWEEN
from lost_update_lab.scenarios.serial import Serial
from lost_update_lab.scenarios.ties import OLDER, ties
from lost_update_lab.scenarios.unordered import LISTS_UNORDERED
from lost_update_lab.telling.narrative import shortened
from lost_update_lab.telling.not_met import WHY_NOT
from lost_update_lab.under_test.operations import VIOLATED
from lost_update_lab.under_test.results import ResultText
from lost_update_lab.under_test.scenario import FAULT_WORDS, Scenario

EVEN_IN_TURNS = "the workers break it even one after the other, in every order: this is no race"
NOTHING_AT_STAKE = (
    "in no serial order was a row or a key changed, so there was nothing to lose. If that surprises you: is a COMMIT "
    "missing?"
)
BY_CLASS = (
    "the answer of {} is compared by its class only, or holds an object that is: {}. Return plain values, or give an "
    "invariant that takes the results"
)
SENT_ONCE = (
    "the client that an operation asks for (`redis`) sends no command a second time. redis.Redis() does, by default: a "
    "command whose reply is lost is then executed twice. If your own client is made so, let the operation make it"
)
FAILED = (
    "in some orders {} fails, as in no serial order: {}. No invariant asks for it; a search without one calls it "
    "refused"
)
BLIND = (
    "the invariant ({}) asks no server and takes no results, and nothing else is compared: an object that was loaded "
    "before, or a list in this process, says the same after every order"
)
RETURNS_NOTHING = (
    "the invariant ({}) holds whatever happens: it asks whether the answer of {} is true, and that is None in every "
    "order, which is not"
)
SAY_IT = "let the operation return whether it has done it, or ask succeeded(a) (lost_update_lab.invariants)"
_WRITE = re.compile(r"\s*(?:INSERT|UPDATE|DELETE|MERGE)\b", re.IGNORECASE)
#: "UPDATE 1", "INSERT 0 1", "1 row"
_SOME_ROWS = re.compile(r"\b[1-9]\d*(?: rows?)?$")
READ_AGAIN = (
    "let it read what is in the servers now (refresh_from_db(), a query), or take what the operations return: "
    "lambda a, b: …"
)
CALLS = (
    "how often {} is called counts only of workers that come to their end at the first try: a call that happens twice "
    "after a fault, or as a task is delivered again, is no difference here. Let the stand-in write a row, or a key: "
    "that is compared"
)
MESSAGES = "messages (PUBLISH, NOTIFY) are not compared: one that is sent twice is no difference here"


def notes_of(opened: Opened, searched: SearchResult, blind: Sequence[tuple[str, str]]) -> Iterator[str]:
    """`blind`: see blind_laws."""
    orders = _orders(opened)
    if opened.scenario.invariants and orders and all(each.judgement.word == VIOLATED for each in orders):
        yield EVEN_IN_TURNS
    if VIOLATED in searched.words:
        yield from ties(orders, opened.database.tables)
    elif len(opened.scenario.workers) == 2:
        yield from ties(orders, opened.database.tables, OLDER)
    if opened.remembered:
        held = ", ".join(opened.remembered)
        yield f"{held} is not the same after each schedule. Each worker should begin like a new process"
    names = ", ".join(
        sorted(f"{table}.{column}" for table, column in opened.left_out if table in opened.touched)
    )
    if names:
        yield f"not compared, because the server's own clock or chance writes it: {names}"
    told = {
        (each.title, name) for each in opened.database.tables for name in opened.by_server.told_by_row(each)
    }
    partly = opened.by_server.columns.keys() - set(opened.left_out) - told
    names = ", ".join(sorted(f"{table}.{column}" for table, column in partly if table in opened.touched))
    if names:
        yield f"not compared where the server's own clock or chance has written it: {names}"
    if opened.scenario.ignore and not opened.scenario.invariants:
        yield f"not compared, as `ignore` asks: {', '.join(opened.scenario.ignore)}"
    for order in opened.judge.with_gaps:
        yield BETWEEN.format(order)
    if opened.judge.aborted:
        yield ABORTED.format(" and ".join(sorted(opened.judge.aborted)))
    for who, command in opened.judge.unordered:
        yield LISTS_UNORDERED.format(opened.scenario.names[who], shortened(command, 80))
    yield from _failed(opened)
    if not nobody_looks(opened.scenario, blind):
        yield from (f"{cause}. What would help: {remedy}" for cause, remedy in blind)
    if _changed_nothing(opened):
        yield NOTHING_AT_STAKE
    yield from _by_class(opened)
    lost_reply = Fault.LOST_REPLY in searched.fired and searched.under(Fault.LOST_REPLY) == UNBROKEN
    if lost_reply and _hands_out_redis(opened):
        yield SENT_ONCE
    if _sends_messages(opened):
        yield MESSAGES
    if RecordedCalls.made and not opened.scenario.invariants and _calls_may_vanish(opened.scenario):
        yield CALLS.format(" and ".join(RecordedCalls.made))
    yield from _not_met(opened.scenario, searched)


def _not_met(scenario: Scenario, searched: SearchResult) -> Iterator[str]:
    """Faults that the user has asked for by name, and that could not happen here. A crash that leaves nothing half done
    is told by its absence."""
    if len(scenario.kinds) == len(Fault) or not searched.exhausted:
        return
    for word, kinds in FAULT_WORDS.items():
        if kinds <= scenario.kinds - {Fault.CRASH} and not kinds & searched.fired:
            yield f"no schedule has met any of the {word.replace('_', ' ')}: {WHY_NOT[min(kinds)]}"


def _calls_may_vanish(scenario: Scenario) -> bool:
    """What a worker has called is a part of its answer. May there be a worker whose answer does not count?"""
    return "calls" not in scenario.ignore and bool(scenario.faults or scenario.after_a_crash)


def _orders(opened: Opened) -> Sequence[Serial]:
    """The serial orders, as far as any were run."""
    return opened.judge.serial.all() if opened.judge.serial else ()


def nobody_looks(scenario: Scenario, blind: Sequence[tuple[str, str]]) -> bool:
    """Does no invariant look at what a schedule has done? Without one, serial orders do."""
    laws = len(scenario.invariants) + len(scenario.always)
    return bool(scenario.invariants) and len(blind) == laws


def blind_laws(opened: Opened) -> Iterator[tuple[str, str]]:
    """Of each invariant that looks at nothing a schedule has done: why it does not, and the remedy. It may be asked
    hundreds of times for that."""
    scenario = opened.scenario
    for law in (*scenario.invariants, *scenario.always):
        if law.is_blind:
            yield BLIND.format(law.sentence), READ_AGAIN
        elif silent := opened.judge.taken.nothing_said(law):
            names = " and ".join(scenario.callers[each].name for each in silent)
            yield RETURNS_NOTHING.format(law.sentence, names), SAY_IT


def _failed(opened: Opened) -> Iterator[str]:
    """An invariant that takes the results has seen the error; a lock that keeps others out gives its answer so."""
    scenario = opened.scenario
    if scenario.waits_only or any(law.takes_results for law in scenario.invariants):
        return
    endings = [ending for order in _orders(opened) for ending in order.observed.endings]
    known = {(each.worker, type(each.error)) for each in endings}
    failed = dict[str, list[str]]()
    for (who, kind), error in opened.judge.failed.items():
        if (who, kind) not in known:
            failed.setdefault(error, []).append(scenario.names[who])
    for error, names in failed.items():
        yield FAILED.format(" or ".join(sorted(names)), error)


def _hands_out_redis(opened: Opened) -> bool:
    return any("redis" in each.wants for worker in opened.scenario.workers for each in worker.operations)


def _sends_messages(opened: Opened) -> bool:
    commands = (step.command.upper() for order in _orders(opened) for step in order.steps)
    return any(
        each.startswith(("PUBLISH ", "SPUBLISH ", "NOTIFY ")) or "PG_NOTIFY(" in each for each in commands
    )


def _changed_nothing(opened: Opened) -> bool:
    """Keys that were there before may have been changed: they are not compared here."""
    left = [each.left for each in _orders(opened)]
    keys = any(each.lasting or each.leased for each in left) or (opened.keys and opened.keys.left)
    if not left or keys or any(each.changed for each in left):
        return False
    steps = [step for each in _orders(opened) for step in each.steps]
    cancels_out = any(_WRITE.match(step.command) and _SOME_ROWS.search(step.reply) for step in steps)
    return not (cancels_out and any(step.command == "COMMIT" for step in steps))


def _by_class(opened: Opened) -> Iterator[str]:
    """An invariant sees all of the results, or asks for none of them."""
    if opened.scenario.invariants:
        return
    names, found = opened.scenario.names, dict[str, set[str]]()
    for order in _orders(opened):
        for ending in order.observed.endings:
            if isinstance(ending.result, ResultText):
                for kind in ending.result.by_class:
                    found.setdefault(kind.__qualname__, set()).add(names[ending.worker])
    for title, workers in sorted(found.items()):
        yield BY_CLASS.format(" and ".join(sorted(workers)), title)
