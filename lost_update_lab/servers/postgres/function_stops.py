"""Between the statements of a function that PostgreSQL executes: others can come there, as between any two commands.

    A: SELECT transfer('a', 'b')      its first UPDATE has locked a
    B: SELECT transfer('b', 'a')      its first UPDATE has locked b
    A:                                its second UPDATE waits for b
    B:                                its second UPDATE waits for a: a deadlock

While a search needs it, each function has a stop before each of its statements that looks at tables or calls a
function, but for the first one. A stop waits for a lock that the explorer may hold (looks.py), and does nothing else:
neither FOUND nor ROW_COUNT changes, and no line moves. Functions in PL/pgSQL and in SQL are given stops. A function
that is STABLE sees one state of the tables and locks nothing: it needs none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from lost_update_lab.servers.compound import READS_ELSEWHERE
from lost_update_lab.telling.narrative import shortened

#: not those of extensions
FUNCTIONS = """
SELECT p.oid::regprocedure::text, upper(proname), lanname, prosrc, pg_get_functiondef(p.oid),
    prorettype = 'trigger'::regtype, lanname IN ('plpgsql', 'sql') AND provolatile = 'v'
FROM pg_proc p JOIN pg_language l ON l.oid = prolang JOIN pg_namespace n ON n.oid = pronamespace
WHERE provolatile <> 'i' AND prokind IN ('f', 'p') AND prorettype <> 'event_trigger'::regtype
AND nspname !~ '^(pg_|explorer|information_schema)'
AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = p.oid AND classid = 'pg_proc'::regclass AND deptype = 'e')
"""
_TOKEN = re.compile(
    r"""(?P<skip>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<text>E'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(?P<tag>[^\W\d]\w*|)\$.*?\$(?P=tag)\$)
    |(?P<word>[^\W\d]\w*)|(?P<sign>.)""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
#: a statement with one of these words looks at rows, or may do so
_LOOKS = frozenset(
    re.findall(
        r"\w+",
        """
    SELECT INSERT UPDATE DELETE MERGE WITH TABLE VALUES TRUNCATE LOCK CONSTRAINTS PERFORM EXECUTE CALL FETCH OPEN
""",
    )
)
_PLAIN = re.compile(
    r"\s*(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM)\s+(?:ONLY\s+)?(?:\"?\w+\"?\s*\.\s*)?\"?(\w+)", re.IGNORECASE
)
#: how a stop is written: its number, and the table to which the statement writes if it looks at no other one
_FORMS = {"plpgsql": "IF explorer.stop({}, '{}') THEN END IF; ", "sql": "SELECT explorer.stop({}, '{}'); "}
_STOP = re.compile("|".join(re.escape(form).replace(r"\{\}", r"\w*") for form in _FORMS.values()))
_ATOMIC = re.compile(r"\bBEGIN ATOMIC\b")


class Lexeme(NamedTuple):
    """`word`: in capitals; "" of a text in quotes."""

    word: str
    start: int
    end: int


class Function(NamedTuple):
    """`signature`: with the types of its arguments. `name`: in capitals. `definition`: the command that makes it.
    `stops`: may others come between its statements, and can stops be written into it?"""

    signature: str
    name: str
    language: str
    body: str
    definition: str
    by_trigger: bool
    stops: bool

    def with_stops(self, called: Collection[str], places: list[str]) -> str:
        """Its definition with stops. `called`: the names of functions, in capitals. `places`: the place of each stop,
        by its number; those of its stops are added."""
        definition, body = _STOP.sub("", self.definition), _STOP.sub("", self.body)
        if not body and (atomic := _ATOMIC.search(definition)):
            body = definition[atomic.end() :]
        at, done, parts = definition.rindex(body), 0, list[str]()
        for start, end in _stopping(body, self.language, first=not self.by_trigger, called=called):
            statement = body[start:end]
            table = "" if _calls(statement, called) else _only_table(statement)
            places.append(f"{self.signature}: {shortened(statement, 80)}")
            parts += [body[done:start], _FORMS[self.language].format(len(places) - 1, table)]
            done = start
        return "".join([definition[:at], *parts, definition[at + done :]])


def _stopping(body: str, language: str, first: bool, called: Collection[str]) -> Iterator[tuple[int, int]]:
    """Where the statements begin and end before which others can come. `first`: before the first one it makes no
    difference, unless that is repeated."""
    for start, end, repeats in (_of_plpgsql if language == "plpgsql" else _of_sql)(body):
        if _calls(body[start:end], called) or _calls(body[start:end], _LOOKS):
            if repeats or not first:
                yield start, end
            first = False


def _calls(statement: str, names: Collection[str]) -> bool:
    return any(token.word in names for token in _tokens(statement))


def _only_table(statement: str) -> str:
    """The table to which it writes, if it looks at no other one; else ""."""
    found = None if READS_ELSEWHERE.match(statement) else _PLAIN.match(statement)
    return found[1].lower() if found else ""


def _tokens(text: str) -> Iterator[Lexeme]:
    for found in _TOKEN.finditer(text):
        if found["skip"] is None:
            yield Lexeme((found["word"] or found["sign"] or "").upper(), found.start(), found.end())


def _of_sql(body: str) -> Iterator[tuple[int, int, bool]]:
    """The statements of a function in SQL: where each begins and ends, and whether it is repeated, which none is."""
    start, depth = -1, 0
    for token in _tokens(body):
        depth += {"(": 1, ")": -1}.get(token.word, 0)
        start = token.start if start < 0 else start
        if token.word == ";" and not depth:
            yield start, token.end, False
            start = -1
    if start >= 0:
        yield start, len(body), False


def _of_plpgsql(body: str) -> Iterator[tuple[int, int, bool]]:
    """The same of PL/pgSQL. Of IF, WHILE and the like the head counts: what comes before THEN or LOOP. Only where a
    statement may stand is one found."""
    reader, loops = _Reader(body), 0
    reader.skip_to("BEGIN")
    while (token := reader.next()) is not None:
        match token.word:
            case "BEGIN" | "ELSE" | "EXCEPTION":
                continue
            case "LOOP":
                loops += 1
            case "DECLARE":
                reader.skip_to("BEGIN")
            case "<":
                reader.skip_to(">")
                reader.skip_to(">")
            case "END":
                loops -= reader.skip_to(";").startswith("LOOP")
            case "ELSIF" | "ELSEIF" | "WHEN":
                reader.head()
            case "IF" | "CASE" | "WHILE" | "FOR" | "FOREACH":
                end, repeats = reader.head()
                yield token.start, end, loops > 0
                loops += repeats
            case _:
                reader.skip_to(";", of=token)
                yield token.start, reader.end, loops > 0


class _Reader:
    """Reads the tokens of a body of PL/pgSQL, statement by statement."""

    def __init__(self, body: str) -> None:
        self._tokens = _tokens(body)
        self.end = 0

    def next(self) -> Lexeme | None:
        token = next(self._tokens, None)
        self.end = token.end if token else self.end
        return token

    def skip_to(self, word: str, of: Lexeme | None = None) -> str:
        """Skip to this word, outside of brackets. Returns the first word that is skipped. `of`: already read."""
        depth, first = 0, ""
        if of and of.word == word:
            return first
        while token := self.next():
            first = first or token.word
            depth += {"(": 1, ")": -1}.get(token.word, 0)
            if token.word == word and depth <= 0:
                break
        return first

    def head(self) -> tuple[int, bool]:
        """Skip to the THEN or LOOP that ends a head, and to no THEN of a CASE in it. Returns where it ends, and whether
        what follows is repeated."""
        depth = 0
        while token := self.next():
            depth += {"(": 1, ")": -1, "CASE": 1, "END": -1}.get(token.word, 0)
            if token.word in ("THEN", "LOOP") and depth <= 0:
                return token.end, token.word == "LOOP"
        return self.end, False


class FunctionStops:
    """`ask`: executes a query. `run`: executes commands; raises RuntimeError."""

    def __init__(self, ask: Callable[[str], list[tuple[str, ...]]], run: Callable[[str], None]) -> None:
        self._ask, self._run = ask, run
        self._before: list[str] = []
        #: where each stop is, by its number, from 1
        self.places = [""]

    def make(self) -> list[str]:
        """Returns the functions that could be given no stops."""
        functions = [
            Function(signature, name, language, body, definition, by_trigger == "t", stops == "t")
            for signature, name, language, body, definition, by_trigger, stops in self._ask(FUNCTIONS)
        ]
        called, without = {each.name for each in functions}, []
        for each in (each for each in functions if each.stops):
            try:
                with_stops = each.with_stops(called, self.places)
                if with_stops != (before := _STOP.sub("", each.definition)):
                    self._run(with_stops)
                    self._before.append(before)
            except (RuntimeError, ValueError):
                without.append(each.signature)
        return without

    def drop(self) -> None:
        """Each function as it was."""
        for definition in self._before:
            self._run(definition)
        self._before.clear()
