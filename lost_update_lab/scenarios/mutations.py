"""What protects an operation is removed, or moved, one piece at a time. Which piece does no schedule need?

Locks, transactions, isolation levels, ORDER BY and changes in place (`F()`) are mutated where the operations send them
(mutator.py), by the line of the user's code that sends them. Constraints are dropped in the database.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from lost_update_lab.model.errors import Broken
from lost_update_lab.scenarios.control import UntilBroken
from lost_update_lab.scenarios.exploration import Opened
from lost_update_lab.scenarios.in_place import CHANGES_SEVERAL
from lost_update_lab.scenarios.mutator import Mutator
from lost_update_lab.scenarios.result import NOT_TRIED, SURVIVES, UNDECIDED, Mutation, Tried
from lost_update_lab.scenarios.serial import SerialOrders
from lost_update_lab.snapshot.catalogue import Table
from lost_update_lab.telling.narrative import shortened
from lost_update_lab.under_test.operations import BREACHES
from lost_update_lab.under_test.scenario import Mistake

CONSTRAINT = "without the constraint"
FAILS = "so changed, {who} fails without anybody beside it, too: {what}"
_IN_ALL_LINES = re.IGNORECASE | re.DOTALL
#: what follows the table's name: the columns that get a value, where a statement names them
_NAMED = re.compile(
    r'^["`]?\s*(?:AS\s+\S+\s*)?\((?!\s*SELECT\b)([^()]*)\)|^["`]?\s*SET\s(.*)|^["`]?\s*(DEFAULT)\s+VALUES'
    r"|\bTHEN\s+INSERT\s*\(([^()]*)\)",
    _IN_ALL_LINES,
)


def mutations(opened: Opened) -> Iterator[Tried]:
    """Each mutation that is possible for these operations, and its result."""
    mutator = Mutator()
    with opened.harness([mutator.install]) as (harness, system):
        orders = SerialOrders(harness, system)
        commands = {step.command for each in orders.all() for step in each.steps}
        usual = _fail_alone(orders)
        touched = {table.oid: table for table in opened.database.tables if table.title in opened.touched}
    for mutation in mutator.seen:
        yield _tried(opened, mutation, usual)
    yield from (Tried(mutation, NOT_TRIED, why) for mutation, why in mutator.left.items())
    with opened.of.constraints(opened.addresses, touched.values()) as (run, constraints):
        for each in constraints:
            key_of = touched.get(each.key_of)
            if key_of and not any(gives_key(key_of, command) for command in commands):
                continue  # nobody can give a key twice that a sequence numbers; rows that are only changed need none
            with each.dropped(run, opened.database.restore):
                yield _tried(opened, Mutation(CONSTRAINT, "", each.title), usual)


def gives_key(table: Table, command: str) -> bool:
    """Does its text put rows there, whose key the server does not make by itself?"""
    into = rf"\b(?:INSERT|REPLACE|MERGE)\b.*?\b{re.escape(table.name)}\b"
    if not (found := re.search(into, command, _IN_ALL_LINES)):
        return False
    made = {each.name.lower() for each in table.columns if each.name in table.key and each.unlike_any}
    if not (columns := _NAMED.search(command[found.end() :])):
        return True  # it gives every column
    (names,) = filter(lambda each: each is not None, columns.groups())
    return made <= {each.partition("=")[0].strip(' "`').lower() for each in names.split(",")}


def _fail_alone(orders: SerialOrders) -> dict[str, str]:
    """The workers that raise something without anybody beside them, and what."""
    found: dict[str, str] = {}
    for index, count in enumerate(orders.operations):
        ending = orders.run((index,) * count).observed.endings[index]
        if ending.error is not None:
            found[ending.worker] = shortened(f"{type(ending.error).__name__}: {ending.error}", 120)
    return found


def _tried(opened: Opened, mutation: Mutation, usual: Collection[str]) -> Tried:
    """`usual`: the workers that fail alone whatever is removed. Where another one does so, no schedule shows what that
    piece is good for."""
    mutator = Mutator(mutation)
    try:
        with opened.harness([mutator.install]) as (harness, system):
            for who, what in _fail_alone(SerialOrders(harness, system)).items():
                if who not in usual:
                    return Tried(mutation, UNDECIDED, FAILS.format(who=who, what=what))
            searched = UntilBroken(harness).explore()  # right is what the whole operations come to
    except (Broken, Mistake) as error:
        return Tried(mutation, UNDECIDED, str(error))
    word = next((word for word in BREACHES if word in searched.words), "")
    if found := searched.smallest(word) if word else None:
        return Tried(mutation, word, found.judgement.sentences[0])
    if mutator.rows:
        return Tried(mutation, NOT_TRIED, CHANGES_SEVERAL)
    return Tried(mutation, SURVIVES) if searched.exhausted else Tried(mutation, UNDECIDED, searched.cause)
