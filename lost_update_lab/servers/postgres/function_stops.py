"""Between the statements of a function that PostgreSQL executes: others can come there, as between any two commands.

    A: SELECT transfer('a', 'b')      its first UPDATE has locked a
    B: SELECT transfer('b', 'a')      its first UPDATE has locked b
    A:                                its second UPDATE waits for b
    B:                                its second UPDATE waits for a: a deadlock

While a search needs it, each function in PL/pgSQL or SQL has a stop before each of its statements that looks at tables
or calls a function. A stop waits for a lock that the explorer may hold (looks.py), and does nothing else: neither FOUND
nor ROW_COUNT changes, and no line moves. A function that is not VOLATILE sees one state of the tables and locks
nothing: it needs none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from lost_update_lab.servers.compound import READS_ELSEWHERE, looks_elsewhere, words_of
from lost_update_lab.servers.postgres.plpgsql import (
    How,
    Stop,
    Unreadable,
    lexemes,
    looks,
    named_in,
    statements_of_plpgsql,
    statements_of_sql,
)
from lost_update_lab.servers.postgres.unseen import ABOVE
from lost_update_lab.snapshot.catalogue import OF_THE_USER
from lost_update_lab.telling.narrative import shortened

#: not those of extensions
FUNCTIONS = f"""
SELECT p.oid::regprocedure::text, proname, lanname, prosrc, pg_get_functiondef(p.oid), proconfig::text,
    prorettype = 'trigger'::regtype, lanname IN ('plpgsql', 'sql') AND provolatile = 'v'
FROM pg_proc p JOIN pg_language l ON l.oid = prolang JOIN pg_namespace n ON n.oid = pronamespace
WHERE p.oid >= 16384 AND prokind IN ('f', 'p') AND prorettype <> 'event_trigger'::regtype
AND {OF_THE_USER}
AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = p.oid AND classid = 'pg_proc'::regclass AND deptype = 'e')
"""  # noqa: S608  (names of our own)
#: views, operators, aggregates, casts, domains, and tables with a constraint, a default or a policy: each with what it
#: calls; and tables with a column of such a type
CALLERS = """
SELECT coalesce(r.relname, t.typname), proname FROM pg_depend JOIN pg_proc f ON f.oid = refobjid
LEFT JOIN pg_rewrite w ON classid = 'pg_rewrite'::regclass AND w.oid = objid
LEFT JOIN pg_attrdef a ON classid = 'pg_attrdef'::regclass AND a.oid = objid
LEFT JOIN pg_policy p ON classid = 'pg_policy'::regclass AND p.oid = objid
LEFT JOIN pg_constraint k ON classid = 'pg_constraint'::regclass AND k.oid = objid
LEFT JOIN pg_cast s ON classid = 'pg_cast'::regclass AND s.oid = objid
LEFT JOIN pg_class r ON r.oid IN (w.ev_class, a.adrelid, p.polrelid, k.conrelid)
LEFT JOIN pg_type t ON t.oid IN (k.contypid, s.casttarget)
WHERE refclassid = 'pg_proc'::regclass AND f.oid >= 16384 AND coalesce(r.relname, t.typname) IS NOT NULL
UNION SELECT relname, typname FROM pg_class r JOIN pg_attribute ON attrelid = r.oid JOIN pg_type t ON t.oid = atttypid
WHERE t.oid >= 16384 AND relkind IN ('r', 'p')
UNION SELECT oprname, proname FROM pg_operator o JOIN pg_proc f ON f.oid = oprcode WHERE o.oid >= 16384
UNION SELECT a.proname, f.proname FROM pg_aggregate g JOIN pg_proc a ON a.oid = aggfnoid
JOIN pg_proc f ON f.oid = aggtransfn WHERE a.oid >= 16384
"""
_PLAIN = re.compile(
    r"\s*(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM)\s+(?:ONLY\s+)?(?:\"?\w+\"?\s*\.\s*)?\"?(\w+)", re.IGNORECASE
)
_ATOMIC = re.compile(r"\bBEGIN ATOMIC\b")
#: how a stop is written: its number, and the table to which the statement writes if it looks at no other one
_STOP = "explorer.stop({}, '{}')"
_FORMS = {
    How.STATEMENT: f"IF {_STOP} THEN END IF; ",
    How.DECLARATION: f"explorer_stop_{{}} bool := {_STOP}; ",
    How.ELSIF: f"ELSE IF {_STOP} THEN END IF; IF/*was {{}}*/",
    How.END_IF: "END IF;/*of ELSIF*/ ",
}
_OF_SQL = f"SELECT {_STOP}; "
#: PostgreSQL keeps a body in BEGIN ATOMIC as it has read it
_OF_ATOMIC = "SELECT explorer.stop({}, '{}'::text) AS stop;\n "
#: the same, as found in a function; and what stood there: of ELSIF, the last word of the form
_WRITTEN = [
    (re.compile(re.escape(form).replace(r"\{\}", r"(\w*)")), was)
    for form, was in (
        (_FORMS[How.ELSIF], r"\3"),
        (_FORMS[How.END_IF], ""),
        (_FORMS[How.DECLARATION], ""),
        (_FORMS[How.STATEMENT], ""),
        (_OF_SQL, ""),
        (_OF_ATOMIC, ""),
    )
]
#: it names no table, and executes the triggers of any
_DEFERRED = re.compile(r"\s*(?:SET\s+CONSTRAINTS|COMMIT|END)\b", re.IGNORECASE)
#: what such a command calls stands in another one, or in a string
_UNKNOWN = re.compile(r"\s*(?:EXECUTE|FETCH|MOVE|DO)\b", re.IGNORECASE)
_PERFORM = re.compile(r"^\s*PERFORM\b", re.IGNORECASE)
_LIMITS = re.compile(r"\b(?:lock|statement|transaction)_timeout\b", re.IGNORECASE)


def without_stops(text: str) -> str:
    """A function as it was: a search that was killed may have left stops in it."""
    for written, was in _WRITTEN:
        text = written.sub(was, text)
    return text


#: the numbers of the stops in triggers: before the first row of a command, before a new row, at one that it has locked;
#: and of the first one in a function
NEW_ROW, LOCKED_ROW, FIRST = 1, 2, 3
BEFORE = "others can come before its next statement, in"


class StopPlace(NamedTuple):
    """Where a stop is: in which function, before which statement. `first`: before it, the function does nothing."""

    told: str = ""
    first: bool = False


class Function(NamedTuple):
    """`signature`: with the types of its arguments. `name`: in capitals. `definition`: the command that makes it.
    `config`: the settings that it makes. `stops`: may others come between its statements, and can stops be written?"""

    signature: str
    name: str
    language: str
    body: str
    definition: str
    config: str
    by_trigger: bool
    stops: bool

    @classmethod
    def of(cls, row: tuple[str, ...]) -> Function:
        signature, name, language, body, definition, config, by_trigger, stops = row
        definition, body = without_stops(definition), without_stops(body)
        if not body and (atomic := _ATOMIC.search(definition)):
            body = definition[atomic.end() :]
        return cls(
            signature, name.upper(), language, body, definition, config, by_trigger == "t", stops == "t"
        )

    def statements(self, called: Collection[str]) -> Iterator[Stop]:
        """Those before which others can come. `called`: names of functions, in capitals. Raises Unreadable."""
        if self.language == "plpgsql":
            yield from statements_of_plpgsql(self.body, called)
        else:
            yield from (found for found in statements_of_sql(self.body) if looks(found.statement, called))

    def with_stops(self, called: Collection[str], places: list[StopPlace]) -> str:
        """Its definition with stops. `places`: those of all stops, by their numbers; its own are added."""
        at, done, parts = self.definition.rindex(self.body), 0, list[str]()
        first = not self.by_trigger
        for how, start, statement in self.statements(called):
            number, form = len(places), _FORMS[how] if self.language == "plpgsql" else _OF_SQL
            table = "" if named_in(statement, called) else _only_table(statement)
            word = statement[: len(_first_word(statement))] if how is How.ELSIF else ""
            given = {
                How.DECLARATION: (number, number, ""),
                How.ELSIF: (number, "", word),
                How.END_IF: (),
            }.get(how, (number, table))
            parts += [self.body[done:start], form.format(*given)]
            done = start + len(word)
            if how is not How.END_IF:
                places.append(StopPlace(f"{BEFORE} {self.signature}: {shortened(statement, 80)}", first))
                first = False
        return "".join([self.definition[:at], *parts, self.definition[at + done :]])

    def catches(self, *conditions: str) -> bool:
        """Does it go on after one of these errors?"""
        words = [each.word for each in lexemes(self.body)]
        return "EXCEPTION" in words and not {"OTHERS", "SQLSTATE", *conditions}.isdisjoint(words)

    def limits(self) -> bool:
        """Does it set a time limit of its own?"""
        return bool(_LIMITS.search(self.body) or _LIMITS.search(self.config))

    def has_defaults(self) -> bool:
        """Are there arguments that may be computed by another function?"""
        return " DEFAULT " in self.definition[: self.definition.rindex(self.body)]

    def looks_elsewhere(self) -> bool:
        """Does one of its SELECT … FOR UPDATE look at other rows than it locks? No trigger hears of that."""
        try:
            found = [each.statement for each in self.statements(())]
        except Unreadable:
            return False  # nobody comes between its statements at all, and that is said
        return any(looks_elsewhere(_PERFORM.sub("SELECT", each)) for each in found)


class Reached(NamedTuple):
    """The functions behind a command: all of the database, if it does not show which ones. `limiting`: one that it
    names sets a time limit of its own. `elsewhere`: one of their SELECT … FOR UPDATE looks at other rows, too.
    `without`: into which of them no stop can be written. `one`: it names one of them and nothing else that calls a
    function, so nothing has looked before that function does."""

    functions: tuple[Function, ...] = ()
    limiting: str = ""
    elsewhere: bool = False
    without: str = ""
    one: bool = False

    @classmethod
    def of(
        cls,
        functions: Sequence[Function],
        without: Collection[str],
        names: Collection[str],
        named: Collection[str],
    ) -> Reached:
        """`names`: of those that are named anywhere behind the command. `named`: in the command itself."""
        limiting = next((each.signature for each in functions if each.name in names and each.limits()), "")
        elsewhere = any(each.looks_elsewhere() for each in functions)
        stopless = ", ".join(sorted(each.signature for each in functions if each.signature in without))
        directly = [each for each in functions if each.name in named]
        one = len(named) == len(directly) == 1 and not directly[0].has_defaults()
        return cls(tuple(functions), limiting, elsewhere, stopless, one)


def _executes(body: str) -> bool:
    """Does it execute a text that it has made?"""
    return any(each.word == "EXECUTE" for each in lexemes(body))


def _first_word(statement: str) -> str:
    return next(lexemes(statement)).word


def _only_table(statement: str) -> str:
    """The table to which it writes, if it looks at no other one; else ""."""
    found = None if READS_ELSEWHERE.match(statement) else _PLAIN.match(statement)
    return found[1].lower() if found else ""


class FunctionStops:
    """`ask`: executes a query. `run`: executes commands; raises RuntimeError."""

    def __init__(self, ask: Callable[[str], list[tuple[str, ...]]], run: Callable[[str], object]) -> None:
        self._ask, self._run = ask, run
        self._functions: list[Function] = []
        self._links: dict[str, set[str]] = {}
        self._named: frozenset[str] = frozenset()
        self._reached: dict[str, Reached] = {}
        #: where each stop is, by its number; the first ones are those of triggers
        self.places = [StopPlace()] * FIRST
        #: the signatures of functions into which no stop can be written
        self.without: set[str] = set()
        self._before = [  # left by a search that was killed
            Function.of(row).definition
            for row in self._ask(
                f"{FUNCTIONS} AND coalesce(pg_get_function_sqlbody(p.oid), prosrc) LIKE '%explorer.stop(%'"
            )
        ]
        self.drop()

    def make(self) -> None:
        self._functions = [Function.of(row) for row in self._ask(FUNCTIONS)]
        self._reached.clear()
        called = {each.name for each in self._functions}
        callers = self._ask(CALLERS)
        called |= {name.upper() for name, _ in callers}
        for name, other in (*callers, *self._ask(ABOVE)):
            self._links.setdefault(name.upper(), set()).add(other.upper())
        self._named = frozenset(called.union(self._links))
        for each in (each for each in self._functions if each.stops):
            try:
                if (with_stops := each.with_stops(called, self.places)) != each.definition:
                    # a statement of SQL names tables that the explorer's session may not find
                    self._write(with_stops, checked=each.language == "plpgsql")
                    self._before.append(each.definition)
            except Unreadable:
                self.without.add(each.signature)
            except RuntimeError:
                if len([*each.statements(called)]) > 1:
                    self.without.add(each.signature)

    def drop(self) -> None:
        """Each function as it was."""
        for definition in self._before:
            self._write(definition, checked=False)
        self._before.clear()

    def _write(self, definition: str, checked: bool) -> None:
        self._run(f"SET check_function_bodies = {'on' if checked else 'off'}")
        self._run(definition)

    def reached(self, text: str) -> Reached:
        """What this command may call, also through triggers, views and other functions."""
        if text not in self._reached:
            statement = text.partition(" ← ")[0]
            unknown = bool(_UNKNOWN.match(statement))
            named = named_in(statement, self._named)
            names, new = set[str](), named | (self._words_in(text) if unknown else set())
            if _DEFERRED.match(statement):
                new |= {each.name for each in self._functions if each.by_trigger}
            while new := new - names:
                names |= new
                bodies = [each.body for each in self._functions if each.name in new]
                new = set().union(
                    *(self._links.get(name, ()) for name in new),
                    *(named_in(body, self._named) for body in bodies),
                )
                if dynamic := [body for body in bodies if _executes(body)]:
                    unknown = True
                    new |= self._words_in(text, *dynamic)
            functions = [each for each in self._functions if unknown or each.name in names]
            self._reached[text] = Reached.of(functions, self.without, names, named)
        return self._reached[text]

    def _words_in(self, *texts: str) -> set[str]:
        """The names in them, in values and in strings too, of which a command may be made."""
        return {word.upper() for text in texts for word in words_of(text)} & self._named
