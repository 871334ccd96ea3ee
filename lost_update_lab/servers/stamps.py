"""A time that a command only writes down, and one that decides something there: the text of SQL around it tells."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from lost_update_lab.model.sql_strings import STRING, without_strings
from lost_update_lab.servers.compound import words_of

#: before, and after, a time that is only written down
_BEFORE, _AFTER = (
    re.compile(r"(?:[,(]|(?<![<>!])=)\s*$"),
    re.compile(r"\s*(?:\(\s*\))?\s*(?:[,;)]|$|FROM\b|WHERE\b)", re.I),
)
#: functions that make it a part of a larger value
_PART_OF = re.compile(r"(?:to_|row_to_)?json\w*|hstore|concat\w*|format|row|array\w*", re.IGNORECASE)
_CALLED = re.compile(r"(\w+)\s*$")
#: a trigger writes into its row
_NEW = re.compile(r"\bNEW\s*\.\s*[\"`]?\w+[\"`]?\s*:?=\s*$", re.IGNORECASE)
#: in PL/pgSQL: where a statement begins, and where a variable is given a value
_BEGINS = re.compile(r"(?:^|;|\b(?:BEGIN|THEN|ELSE|LOOP|DECLARE)\b)\s*$", re.IGNORECASE)
_ASSIGNS = re.compile(
    _BEGINS.pattern.removesuffix("$") + r"(\w+)(?:\s+time[\w ()]*?)?\s*:?=\s*$", re.IGNORECASE
)
_ENDS = re.compile(r"\s*(?:\(\s*\))?\s*;")
_CLAUSE = re.compile(r"\b(?:WHERE|HAVING|WHEN|RETURNING|INSERT|REPLACE|SET|SELECT|VALUES)\b", re.IGNORECASE)
_CONDITION = re.compile(r"\b(?:WHERE|HAVING|ON(?!\s+(?:CONFLICT|DUPLICATE)))\b", re.IGNORECASE)
_BRACKET = re.compile(r"[()]")
_WRITES = re.compile(r"\b(?:INSERT|UPDATE|MERGE|REPLACE)\b", re.IGNORECASE)
#: the clause in which a time decides, or is told
_DECIDES = frozenset({"WHERE", "HAVING", "WHEN", "RETURNING"})


def compared(columns: Collection[str], text: str) -> set[str]:
    """The columns that stand in a condition of this command, or by which it takes the first or the last row."""
    conditions = set[str]().union(*map(words_of, _conditions(text)))
    return {each for each in columns if each in conditions or _picks_by(each, text)}


def _conditions(text: str) -> Iterator[str]:
    """Each one up to the bracket that ends its query: `WITH one AS (UPDATE … WHERE …) INSERT INTO t (made) …`."""
    readable = "\\" not in text  # which may escape a quote, or may not
    text = without_strings(text)
    for found in _CONDITION.finditer(text):
        depth = 0
        for bracket in _BRACKET.finditer(text, found.end()) if readable else ():
            depth += 1 if bracket[0] == "(" else -1
            if depth < 0:
                yield text[found.end() : bracket.start()]
                break
        else:
            yield text[found.end() :]


def has_condition(text: str) -> bool:
    return bool(_CONDITION.search(text))


def _picks_by(column: str, text: str) -> bool:
    name = rf"[\"`]?\b{re.escape(column)}\b"
    return bool(
        re.search(rf"\b(?:MAX|MIN)\s*\([^()]*{name}", text, re.IGNORECASE)
        or re.search(rf"\bORDER\s+BY\b[^;]*{name}[^;]*\b(?:LIMIT|FETCH)\b", text, re.IGNORECASE)
    )


def writes(text: str) -> bool:
    return bool(_WRITES.search(text))


def is_stamp(text: str, begin: int, end: int) -> bool:
    """Stands the time alone where a command writes a value?"""
    before = text[text.rfind(";", 0, begin) + 1 : begin]
    clauses = _CLAUSE.findall(before)
    alone = bool(_BEFORE.search(before) and _AFTER.match(text, end))
    written = alone and writes(before) and bool(clauses) and clauses[-1].upper() not in _DECIDES
    return written and not _PART_OF.fullmatch(_call_around(before))


def _call_around(before: str) -> str:
    """The function in whose call this text ends. "": in none."""
    depth = 0
    for bracket in reversed(list(_BRACKET.finditer(STRING.sub(_blanked, before)))):
        depth += 1 if bracket[0] == ")" else -1
        if depth < 0:
            called = _CALLED.search(before, 0, bracket.start())
            return called[1] if called else ""
    return ""


def _blanked(string: re.Match[str]) -> str:
    return " " * len(string[0])


def only_written_down(text: str, times: Iterable[re.Match[str]]) -> bool:
    """The text of a function: are these times written into rows, be it by way of a variable, and nothing else?"""
    variables = set[str]()
    for each in times:
        assigned = _ASSIGNS.search(text, 0, each.start())
        if assigned and _ENDS.match(text, each.end()):
            variables.add(assigned[1])
        elif not _is_written(text, each):
            return False
    names = "|".join(map(re.escape, variables)) or "(?!)"
    uses = re.finditer(rf"(?<![.\w])(?:{names})\b(?!\s*\.)", text, re.IGNORECASE)
    return all(_is_assigned(text, each) or _is_written(text, each) for each in uses)


def _is_written(text: str, found: re.Match[str]) -> bool:
    return is_stamp(text, *found.span()) or bool(_NEW.search(text, 0, found.start()))


def _is_assigned(text: str, variable: re.Match[str]) -> bool:
    """Or declared."""
    begins = _BEGINS.search(text, 0, variable.start())
    return bool(begins and re.match(r"\s*(?::?=|time)", text[variable.end() :], re.IGNORECASE))
