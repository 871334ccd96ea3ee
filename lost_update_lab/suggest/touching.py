"""What a command touches: which tables, which of their rows as far as its text names them, which keys."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lost_update_lab.servers.compound import RELATIVE
from lost_update_lab.suggest.keys import AT_ONCE, READS, WRITES
from lost_update_lab.suggest.recording import RecordedCommand

#: reads, and takes a lock
TAKES_LOCK = "locks"
_NAME = r'((?:["`]?\w+["`]?\.)?["`]?\w+["`]?)'
TABLE_NAMED = re.compile(rf"\b(?:FROM|JOIN|UPDATE|INTO|ONLY)\s+{_NAME}", re.IGNORECASE)
_WRITTEN = re.compile(
    rf"\b(?:(?:INSERT|REPLACE|MERGE)\s+(?:IGNORE\s+)?INTO|DELETE\s+FROM|(?<!FOR\s)(?<!KEY\s)(?<!DO\s)UPDATE)\s+"
    rf"(?:ONLY\s+)?{_NAME}",
    re.IGNORECASE,
)
TAKES_A_LOCK = re.compile(
    r"\bFOR\s+(?:NO\s+KEY\s+)?(?:UPDATE|SHARE|KEY\s+SHARE)\b|\bpg_(?:try_)?advisory|\bGET_LOCK\b"
    r"|\bLOCK\s+IN\s+SHARE\s+MODE\b",
    re.IGNORECASE,
)
_INSERT = re.compile(r"\bINSERT\b", re.IGNORECASE)
#: words that are no tables
_NONE = ("pg_", "information_schema", "SET", "OF", "NOWAIT", "SKIP")
_PLACE = re.compile(r"%s|%\((?P<name>\w+)\)s|(?P<literal>'(?:[^']|'')*')")
_WHERE = re.compile(
    r"\bWHERE\b(.*?)(?:\b(?:ORDER\s+BY|GROUP\s+BY|LIMIT|FOR|RETURNING|LOCK)\b|;|$)", re.IGNORECASE | re.DOTALL
)
#: a value, or what stands for one (_coded)
_VALUE = r"(\$\d+\$|-?\d+(?:\.\d+)?)"
_EQUAL = re.compile(rf'(?:["`\w]+\.)*["`]?(\w+)["`]?\s*=\s*\(?{_VALUE}(?=\s|\)|$)')
_NEW_ROW = re.compile(
    r"\bINTO\s+\S+\s*\(([^()]*)\)\s*VALUES\s*\(((?:[^()]|\([^()]*\))*)\)(?!\s*,)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Use:
    """What one command does to a table or a key. `row`: column → value of the rows that it is about, as texts; empty:
    that is not known."""

    thing: str
    kind: str
    row: Mapping[str, str]
    line: str

    def same_row(self, other: Use) -> bool | None:
        """Are both about the same row? None: nobody can tell."""
        common = self.row.keys() & other.row.keys()
        return all(self.row[name] == other.row[name] for name in common) if common else None


def uses(command: RecordedCommand) -> list[Use]:
    """Everything that it touches, each thing once."""
    if command.server == "redis":
        return [Use(f"key {key}", kind, {"key": key}, command.line) for key, kind in command.keys]
    return list(_of_sql(command))


def _of_sql(command: RecordedCommand) -> Iterator[Use]:
    text, values = _coded(command)
    written = set(_names(_WRITTEN, text))
    there = dict.fromkeys(_names(TABLE_NAMED, text))
    row = _row(command, text, values) if len(there) == 1 else {}
    for name in there:
        if name in written:
            at_once = RELATIVE.search(text) or _INSERT.match(text.lstrip()) or TAKES_A_LOCK.search(text)
            yield Use(name, AT_ONCE if at_once else WRITES, row, command.line)
        else:
            yield Use(name, TAKES_LOCK if TAKES_A_LOCK.search(text) else READS, row, command.line)


def _names(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    names = (re.sub('["`]', "", name) for name in pattern.findall(text))
    return (name for name in names if not name.startswith(_NONE) and name.upper() not in _NONE)


def _row(command: RecordedCommand, text: str, values: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    if new := _NEW_ROW.search(text):
        names = [re.sub('["`\\s]', "", each) for each in new[1].split(",")]
        given = [each.strip() for each in new[2].split(",")]
        if len(names) == len(given):
            found = {n: v for n, v in zip(names, given, strict=True) if re.fullmatch(_VALUE, v)}
        found |= {str(command.drew[1]): str(command.drew[2])} if command.drew else {}
    elif (where := _WHERE.search(text)) and not re.search(r"\bOR\b", where[1], re.IGNORECASE):
        found = dict(_EQUAL.findall(where[1]))
    return {name: values[int(v[1:-1])] if v.startswith("$") else v for name, v in found.items()}


def _coded(command: RecordedCommand) -> tuple[str, Sequence[str]]:
    """The command with `$0$`, `$1$` … in place of its values, and these, as Python writes them."""
    given, found = _given(command.values), list[str]()
    left = list(given.values())

    def coded(place: re.Match[str]) -> str:
        named, literal = place["name"], place["literal"]
        found.append(literal or (given.get(named, "?") if named else left.pop(0) if left else "?"))
        return f"${len(found) - 1}$"

    return _PLACE.sub(coded, command.text), found


def _given(values: str | None) -> dict[object, str]:
    """The values of a command, by name or place."""
    try:
        given = ast.parse(values or "None", mode="eval").body
    except SyntaxError:
        return {}
    if isinstance(given, ast.Dict):
        pairs = zip(given.keys, given.values, strict=True)
        return {name.value: ast.unparse(value) for name, value in pairs if isinstance(name, ast.Constant)}
    if isinstance(given, ast.List | ast.Tuple):
        return {place: ast.unparse(value) for place, value in enumerate(given.elts)}
    return {}
