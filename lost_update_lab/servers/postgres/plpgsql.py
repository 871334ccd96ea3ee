"""Reads the text of a function, in PL/pgSQL or in SQL: where does a statement begin before which others can come?

A stop can be written wherever a statement may stand: before a statement, an IF or a loop, at the end of the body of a
WHILE and before a CONTINUE, as its condition is asked again then, and between two declarations. Before an ELSIF none
can: it becomes ELSE and an IF of its own. Nor before the second WHEN of a CASE, if that looks at rows: `Unreadable`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from enum import Enum, auto
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<skip>\s+|--[^\n]*)|(?P<comment>/\*)|"(?P<quoted>(?:[^"]|"")*)"
    |(?P<text>E'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\$(?P<tag>[^\W\d]\w*|)\$.*?\$(?P=tag)\$)
    |(?P<word>[^\W\d][\w$]*)|(?P<sign>.)""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
#: the rows of a cursor that was declared
_CURSOR = re.compile(r"\bIN\s+(?:\w+|\"[^\"]+\")\s*(?:\(.*\))?\s*LOOP$", re.IGNORECASE | re.DOTALL)
_COMMENT = re.compile(r"/\*|\*/")
#: a statement with one of these words looks at rows, or may do so
LOOKS = frozenset(
    re.findall(
        r"\w+",
        "SELECT INSERT UPDATE DELETE MERGE FROM WITH TABLE VALUES TRUNCATE LOCK CONSTRAINTS "
        "PERFORM EXECUTE CALL FETCH MOVE OPEN",
    )
)
#: a function of PostgreSQL that locks
_ADVISORY = re.compile(r"\bpg_(?:try_)?advisory_\w+", re.IGNORECASE)
_DEPTH = {"(": 1, ")": -1, "[": 1, "]": -1}


class Lexeme(NamedTuple):
    """`word`: a word or a sign, in capitals. `name`: a word, or what stands in double quotes, in capitals."""

    word: str
    name: str
    start: int
    end: int


class How(Enum):
    """What is written at a place, besides the stop itself."""

    STATEMENT = auto()
    DECLARATION = auto()
    #: the ELSIF there becomes ELSE, the stop, and an IF …
    ELSIF = auto()
    #: … which ends here
    END_IF = auto()


class Stop(NamedTuple):
    """Something is to be written at this place. `statement`: before which one; of an IF or a loop, its head."""

    how: How
    at: int
    statement: str


class _Loop(NamedTuple):
    """A loop that is open. `condition`: of a WHILE, if it looks at rows."""

    label: str
    condition: str


class Unreadable(ValueError):
    """No stop can be written at a place where others can come."""


def lexemes(text: str) -> Iterator[Lexeme]:
    at = 0
    while found := _TOKEN.match(text, at):
        at = found.end()
        if found["comment"]:
            at = _behind_comment(text, at)
        elif found["skip"] is None:
            word = (found["word"] or found["sign"] or "").upper()
            name = found["quoted"].replace('""', '"').upper() if found["quoted"] else word
            yield Lexeme(word, name, found.start(), at)


def _behind_comment(text: str, at: int) -> int:
    """PostgreSQL's comments are nested."""
    depth = 1
    while depth and (found := _COMMENT.search(text, at)):
        depth += 1 if found[0] == "/*" else -1
        at = found.end()
    return at


def named_in(text: str, names: Collection[str]) -> set[str]:
    """Which of these, in capitals, does it name? Operators are among them."""
    signs = {name for name in names if not name[:1].isalnum() and name in text}
    return signs | {each.name for each in lexemes(text) if each.name in names}


def looks(text: str, called: Collection[str]) -> bool:
    """May it look at rows, or call one of these functions or operators (in capitals)?"""
    if _ADVISORY.search(text) or named_in(text, called):
        return True
    return any(each.word in LOOKS for each in lexemes(text))


def statements_of_sql(body: str) -> Iterator[Stop]:
    start, depth = -1, 0
    for token in lexemes(body):
        depth += _DEPTH.get(token.word, 0)
        start = token.start if start < 0 else start
        if token.word == ";" and not depth:
            yield Stop(How.STATEMENT, start, body[start : token.end])
            start = -1
    if start >= 0:
        yield Stop(How.STATEMENT, start, body[start:])


def statements_of_plpgsql(body: str, called: Collection[str]) -> Iterator[Stop]:
    """Those that look at rows, in their order. Raises Unreadable."""
    try:
        yield from _Reader(body, lambda text: looks(text, called)).block()
    except IndexError:
        raise Unreadable("an END or a CONTINUE of nothing") from None


class _Reader:
    """Reads a body lexeme by lexeme. `looks`: does this statement look at rows?"""

    def __init__(self, body: str, looks: Callable[[str], bool]) -> None:
        self._body, self._looks = body, looks
        self._lexemes = [*lexemes(body), Lexeme("", "", len(body), len(body))]
        self._at = 0
        #: of each IF that is open: how many ELSIF have become an IF in it
        self._ifs: list[int] = []
        self._loops: list[_Loop] = []

    def block(self) -> Iterator[Stop]:
        yield from self._declarations()
        while (token := self._next()).word or token.start < len(self._body):
            at, label = token.start, ""  # what is written before a statement has to stand before its label
            if token.word == "<":
                label, token = self._label(), self._next()
            yield from self._statement(token, at, label)

    def _label(self) -> str:
        """<<label>>"""
        _, label, _, _ = (self._next() for _ in range(4))
        return label.name

    def _statement(self, token: Lexeme, at: int, label: str) -> Iterator[Stop]:
        match token.word:
            case "BEGIN" | "ELSE" | "EXCEPTION":
                return
            case "LOOP":
                self._loops.append(_Loop(label, ""))
            case "DECLARE":
                yield from self._declarations()
            case "END":
                yield from self._end(token)
            case "IF" | "ELSIF" | "ELSEIF" | "CASE" | "WHEN":
                yield from self._branch(token)
            case "WHILE" | "FOR" | "FOREACH":
                yield from self._loop(token, at, label)
            case "CONTINUE":
                yield from self._continue(token)
            case _:
                end = token.end if token.word == ";" else self._skip_to(";")
                if self._looks(statement := self._body[token.start : end]):
                    yield Stop(How.STATEMENT, token.start, statement)

    def _branch(self, token: Lexeme) -> Iterator[Stop]:
        head = self._body[token.start : self._skip_to("THEN")]
        looks, how = self._looks(head), How.STATEMENT
        if token.word == "IF":
            self._ifs.append(0)
        elif token.word in ("ELSIF", "ELSEIF") and looks:
            self._ifs[-1] += 1
            how = How.ELSIF
        elif token.word == "WHEN" and looks:
            raise Unreadable("a WHEN that looks at rows")
        if looks:
            yield Stop(how, token.start, head)

    def _loop(self, token: Lexeme, at: int, label: str) -> Iterator[Stop]:
        head = self._body[token.start : self._skip_to("LOOP")]
        looks = self._looks(head)
        if looks or (token.word == "FOR" and _CURSOR.search(head)):
            yield Stop(How.STATEMENT, at, head)
        self._loops.append(_Loop(label, head if token.word == "WHILE" and looks else ""))

    def _continue(self, token: Lexeme) -> Iterator[Stop]:
        """CONTINUE [label] [WHEN condition]: the loop's own condition comes next."""
        to = self._lexemes[self._at].name
        statement = self._body[token.start : self._skip_to(";")]
        loops = [each for each in self._loops if each.label == to] or self._loops[-1:]
        again, looks = loops[-1].condition, self._looks(statement)
        if again and looks:
            raise Unreadable("a CONTINUE that looks at rows, in a loop whose condition does")
        if again or looks:
            yield Stop(How.STATEMENT, token.start, again or statement)

    def _end(self, token: Lexeme) -> Iterator[Stop]:
        kind = self._lexemes[self._at].word
        if kind == "LOOP" and (again := self._loops.pop().condition):
            yield Stop(How.STATEMENT, token.start, again)
        if kind == "IF":
            for _ in range(self._ifs.pop()):
                yield Stop(How.END_IF, token.start, "")
        self._skip_to(";")

    def _declarations(self) -> Iterator[Stop]:
        """Up to the BEGIN of the block. A cursor looks only once it is opened."""
        start, cursor = -1, False
        while (token := self._next()).word != "BEGIN":
            if token.start >= len(self._body):
                return
            start = token.start if start < 0 else start
            cursor |= token.word == "CURSOR"
            if token.word == ";" and not cursor and self._looks(declaration := self._body[start : token.end]):
                yield Stop(How.DECLARATION, start, declaration)
            if token.word in (";", "DECLARE"):  # before the first DECLARE there may be a label, or an option
                start, cursor = -1, False

    def _next(self) -> Lexeme:
        token = self._lexemes[self._at]
        self._at = min(self._at + 1, len(self._lexemes) - 1)
        return token

    def _skip_to(self, word: str) -> int:
        """Behind this word, outside of brackets, as PL/pgSQL does it. Returns where that is."""
        depth = 0
        while (token := self._next()).start < len(self._body):
            depth += _DEPTH.get(token.word, 0)
            if token.word == word and depth <= 0:
                break
        return token.end
