"""Every reason for which a search decides nothing has a remedy, and one that fits: a dead end would be one without.

A new reason is one more line of the table, with the thought that this takes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis.exceptions import ConnectionError

import lost_update_lab
from lost_update_lab.harness import Harness
from lost_update_lab.model import errors
from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.errors import Elsewhere
from lost_update_lab.scenarios.mistakes import not_explored
from lost_update_lab.search.search import Search
from tests.lost_update_lab.bank import Bank

ROOT = Path(lost_update_lab.__file__).parent
RAISED = {"Broken", "Elsewhere"}
#: a part of each reason (… where values stand) → the name of its remedy in the code; "": that of Elsewhere
REASONS = {
    "a moment came again on its own way": "REPORT_IT",
    "nothing is heard of any worker": "REPORT_IT",
    "the budget of … s ended": "MORE_TIME",
    "it was interrupted by Ctrl-C": "TO_ITS_END",
    "a schedule did not end within": "SHORTER",
    "sends the same commands again and again, and no time passes": "LET_IT_SLEEP",
    "was changed, and PostgreSQL's counters do not show it": "IT_COUNTS",
    "has given none for": "BUSY",
    "a session that is no worker's has locked it": "ENDS_ITS_TRANSACTION",
    "waits in something that the explorer does not see": "remedy",  # GATE_IT for a socket, or as hang.py says
    "catches BaseException and goes on": "SWALLOWS",
    "… cannot connect": "LOOK_AT_THE_SERVER",
    "run.bypassed": "ITS_OWN_THREADS",
    "it keeps state that …": "KEEPS_STATE",
    "it keeps state that workers share: …": "ONE_FOR_EACH_PROCESS",
    "lets a field of a hash end": "BY_A_KEY",
    "was given in a way that no gate sees": "BY_SET",
    "asks for how long a message has been pending": "BY_ITSELF",
    "the server measures that by its own clock": "NOTE_THE_TIME",
    "own clock decides there, which the explorer cannot move (… in …)": "BY_ANOTHER_CLOCK",
    "own clock decides there, which the explorer cannot move (how long GET_LOCK waits": "BY_ANOTHER_CLOCK",
    "own clock decides there, which the explorer cannot move (SYSDATE() after a wait": "BY_ANOTHER_CLOCK",
    "own clock decides there, which the explorer cannot move (inside of …": "IN_THE_COMMAND",
    "a command to MariaDB, and the explorer was given no": "TO_OTHERS",
    "a command to PostgreSQL, and the explorer was given a MariaDB": "NO_SERVER_THERE",
    "no gate for psycopg's pipeline mode": "WITHOUT_COPY",
    "no gate for a server-side cursor outside of a transaction": "BY_EXECUTE",
    "no gate for psycopg's notifies()": "BY_A_LOOK",
    "no gate for PyMySQL's SSCursor": "BY_EXECUTE",
    "its connection has a read_timeout of": "READS_ON",
    "SET STATEMENT hides the command behind its FOR": "SET_BEFORE",
    "no gate for this command of PyMySQL": "BY_EXECUTE",
    "no gate for this command of aiomysql": "BY_EXECUTE",
    "the explorer puts rows back, and no tables": "IN_THE_SETUP",
    "and not what a materialized view holds": "A_PLAIN_TABLE",
    "it writes the number of its session": "SAY_WHO",
    "hears that Redis does not know a script": "LOAD_IT",
    "was loaded past the gates, and this Redis does not tell its text": "IN_THE_OPERATION",
    "uses the server's own clock, which no schedule can move": "AS_A_SCRIPT",
    "of the function {name} chooses at random": "AS_A_SCRIPT",
    "computes which commands it calls": "AS_A_SCRIPT",
    "it uses Redis database {used}, and the explorer was given": "IN_ONE_NUMBER",
    "reaches the keys of another numbered database": "IN_ONE_NUMBER",
    "it uses the database {used}, and the explorer was given {given}": "IN_ONE_DATABASE",
    "it uses another database of that server": "IN_ONE_DATABASE",
    "others see what is written to that table before COMMIT": "IN_INNODB",
    "MariaDB would end an idle session by its {limit}": "NO_LIMIT",
    "PostgreSQL would end a session by its {limit}": "WITHOUT_LIMIT",
    "a command reads, or sets, the number of a sequence": "IN_A_ROW",
    "a command asks PostgreSQL who is at work": "BY_THE_LOCK",
    "that its code refers to no more": "CLOSE_IT",
    "asks Redis who is connected, or who listens": "BY_A_KEY_OF_ITS_OWN",
    "a random draw among few decides, and only one outcome of it was explored": "CHOOSE_BEFORE",
    "the server chooses at random": "CHOOSE_BEFORE",
    "a function goes on after an error that the explorer cannot let it have": "STATEMENTS_APART",
    "a function sets a time limit of its own": "LIMITS_OUTSIDE",
    "a prepared transaction belongs to no session": "IN_ONE_PHASE",
    "one command ends a transaction and begins the next": "WITHOUT_CHAIN",
    "the explorer cannot write its stops into a function": "STATEMENTS_APART",
    "in one routine, MariaDB locks rows by several statements": "STATEMENTS_APART",
    "a deferred trigger looks inside of that COMMIT": "BY_EXECUTE",
    "cannot look at a table that a worker has locked as a whole": "BY_ROWS",
    "messages come to a subscription that the explorer cannot look into": "BY_PLAIN_TEXT",
    "a procedure commits inside, and": "ONE_BY_ONE",
    "each command of a procedure commits by itself there": "ONE_BY_ONE",
    "the explorer has sent a COMMIT since": "IN_A_TRANSACTION",
    "a SELECT tries an advisory lock for a row": "LOOK_AGAIN",
    "PostgreSQL looks at rows in a SELECT and locks others later": "LOOKS_BY_ITSELF",
    "in one command, MariaDB looks at rows and locks others later": "LOOKS_BY_ITSELF",
    "the explorer sees locks of rows and of names": "BY_ROWS",
    "it waits for a lock inside of this process": "",
    "workers stand for machines of their own, and a file is on one machine": "",
    "which was opened before the worker began": "IN_REAL_PROCESSES",
    "was changed, and that goes by the real clock": "IN_REAL_PROCESSES",
    "it locks a file by …, which the explorer cannot follow": "BY_FLOCK",
    "through a time.sleep that was saved before the explorer": "BY_THE_MODULE",
    "was in its own code for": "TURNS",
    "it forks another process": "IN_THIS_PROCESS",
    "it starts another process by multiprocessing": "IN_THIS_PROCESS",
    "it starts a program": "IN_THIS_PROCESS",
    "it ends its process by os._exit": "RAISE",
    "blocks its event loop, for which other coroutines wait": "AWAIT_IT",
    "is cancelled again while psycopg cancels its command": "LET_IT_END",
    "is cancelled while a command of aiomysql is under way": "LET_IT_END",
    "waits for a socket, of a client that has no gate": "GATE_IT",
    "a connection of aiomysql was made outside of the workers": "OF_ITS_OWN",
    "two coroutines of {who} use one connection of aiomysql at a time": "OF_ITS_OWN",
    "one connection {what} is used by two workers": "OF_ITS_OWN",
    "an operation uses memory that processes share": "IN_A_SERVER",
    "which protects nothing from another machine": "ON_A_SERVER",
    "it talks to …, and the explorer was given no server there": "THE_SERVERS",
}


def raised() -> Iterator[tuple[str, str, str]]:
    """Every reason of the engine: where it stands, its text, the name of its remedy ("": that of Elsewhere)."""
    for path in sorted(ROOT.rglob("*.py")):
        tree = ast.parse(path.read_text())
        names = dict(_assigned(tree))
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in RAISED:
                remedy = ast.unparse(call.args[1]) if len(call.args) > 1 else ""
                place = f"{path.relative_to(ROOT)}:{call.lineno}"
                yield place, _text(call.args[0], names), remedy


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for each in ast.walk(tree):
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
            yield each.targets[0].id, each.value
        elif isinstance(each, ast.ImportFrom) and each.module and each.module.startswith("lost_update_lab"):
            source = ROOT.parent.joinpath(*each.module.split(".")).with_suffix(".py")
            if source.exists() and source != ROOT / "model" / "errors.py":
                there = dict(_constants(source))
                yield from ((name.name, there[name.name]) for name in each.names if name.name in there)


def _constants(source: Path) -> Iterator[tuple[str, ast.expr]]:
    for each in ast.parse(source.read_text()).body:
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
            yield each.targets[0].id, each.value


def _text(told: ast.expr, names: dict[str, ast.expr]) -> str:
    """The text, with … for its values; constants are known."""
    match told:
        case ast.Constant():
            return str(told.value)
        case ast.JoinedStr():
            return "".join(_text(each, names) for each in told.values)
        case ast.FormattedValue(value=ast.Name(id=name)) if name.isupper() and name in names:
            return _text(names[name], names)
        case ast.Call(func=ast.Attribute(value=text, attr="format")):
            return _text(text, names)
        case ast.Name(id=name) if name in names:
            return _text(names[name], names)
        case ast.Attribute():
            return ast.unparse(told)
    return "…"


def test_every_reason_has_the_remedy_that_fits_it() -> None:
    met = set()
    for place, told, remedy in raised():
        [part] = [part for part in REASONS if part in told] or [f"{place}: {told!r} is a new reason"]
        assert remedy == REASONS.get(part), f"{place}: {told!r}"
        met.add(part)
    assert REASONS.keys() - met == set(), "no longer a reason"


def test_a_gate_is_asked_for_only_where_a_client_without_one_was_seen() -> None:
    """Past the gates at a server (search.py), or waiting in a socket (hang.py)."""
    users = {each for each in ROOT.rglob("*.py") if re.search(r"\bGATE_IT\b", each.read_text())}
    assert {each.name for each in users} == {
        "errors.py",
        "event_loop.py",
        "hang.py",
        "search.py",
        "mistakes.py",  # where it is told to users
    }


def test_the_remedies_say_what_to_do() -> None:
    for name, remedy in vars(errors).items():
        if name.isupper():
            assert re.match(r"[a-z`]", remedy), name
            assert len(remedy.split()) > 2, name


def test_what_was_seen_before_is_told(harness: Callable[..., Harness]) -> None:
    """Uses a file only where a reply was lost, and these schedules come last."""

    def on_a_file(bank: Bank, amount: int) -> str:
        try:
            bank.redis.set("lock", amount)
        except ConnectionError:
            with open("x.lock", "w"):
                pass
        return "ok"

    with pytest.raises(Elsewhere) as error:
        Search(harness(on_a_file, faults=1, kinds=frozenset({Fault.LOST_REPLY}))).explore()
    seen = error.value.seen
    assert seen["words"] == {"lost": seen["schedules"]} != {"lost": 0}
    assert seen["states"] > 0
    told = Elsewhere("it opens a file")
    assert told.before == ""
    told.seen = {"schedules": 14, "words": {"unbroken": 12, "lost": 2}}
    assert told.before == "until then 14 schedules were executed (2 lost, 12 unbroken), which prove nothing"
    assert "(2 lost, 12 unbroken), which prove nothing. The remedy: use what all" in str(not_explored(told))
