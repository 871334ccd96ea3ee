"""Parse a CSV file: `seller,account,amount,reference`. Pure: bytes in, lines out, no exception for any input.

Each physical line is parsed by itself, because no field spans lines. A missing closing quote, or a byte that is not
UTF-8, therefore spoils one line and not the rest of the file.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ledger.names import UNSEEN
from ledger.posting import BIGINT

COLUMNS = ("seller", "account", "amount", "reference")
MAX_LINE = 1000  # bytes

_SELLER = re.compile(r"[\w .:&+'-]{1,40}")  # no slash: it separates seller and reference in the line's key
#: as the API has it. `.` and `..` are parts of an address: no client can ask for them
_ACCOUNT = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.:-]{1,40}")
_REFERENCE = re.compile(rf"[^\W_][^{UNSEEN}\ud800-\udfff]{{0,49}}")
_AMOUNT = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII)
_OTHER_ENCODINGS = {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}


@dataclass(frozen=True, slots=True)
class FileLimits:
    """The largest accepted file."""

    max_bytes: int = 10_000_000
    max_rows: int = 100_000


@dataclass(frozen=True, slots=True)
class GoodLine:
    """`amount`: in minor units. `number`: line number in the file; the header is line 1."""

    number: int
    seller: str
    account: str
    amount: int
    reference: str

    @property
    def key(self) -> str:
        """The idempotency key: a seller's reference names one payment. At most 98 characters."""
        return f"import/{self.seller}/{self.reference}"


@dataclass(frozen=True, slots=True)
class BadLine:
    number: int
    problem: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed file. With a `problem` it has no lines at all."""

    good: tuple[GoodLine, ...] = ()
    bad: tuple[BadLine, ...] = ()
    problem: str = ""


class _Bad(Exception):
    """Why a line cannot be imported."""


def parse(content: bytes, limits: FileLimits | None = None) -> Parsed:
    """Return the good and bad lines of a CSV file, or why it cannot be imported at all."""
    limits = limits or FileLimits()
    if len(content) > limits.max_bytes:
        return Parsed(problem=f"the file has more than {limits.max_bytes:,} bytes: split it")
    for mark, name in _OTHER_ENCODINGS.items():
        if content.startswith(mark):
            return Parsed(problem=f"the file is {name}: save it as CSV UTF-8")
    if not content.strip():
        return Parsed(problem="the file is empty")
    rows = _rows(content.removeprefix(codecs.BOM_UTF8))
    try:
        order = _header(next(rows, (1, b""))[1])
    except _Bad as bad:
        return Parsed(problem=str(bad))
    return _lines(rows, order, limits)


def _lines(rows: Iterator[tuple[int, bytes]], order: list[int], limits: FileLimits) -> Parsed:
    good: list[GoodLine] = []
    bad: list[BadLine] = []
    first: dict[str, int] = {}  # key → the line that had it first
    for number, raw in rows:
        if len(good) + len(bad) >= limits.max_rows:
            return Parsed(problem=f"the file has more than {limits.max_rows:,} lines: split it")
        try:
            line = _line(number, raw, order)
            if line.key in first:
                raise _Bad(
                    f"the reference {line.reference} of {line.seller} is on line {first[line.key]} already"
                )
        except _Bad as error:
            bad.append(BadLine(number, str(error)))
        else:
            first[line.key] = number
            good.append(line)
    if not good and not bad:
        return Parsed(problem="the file has no lines after its header")
    return Parsed(tuple(good), tuple(bad))


def _rows(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (number, bytes) of each line that is not blank. Lines end with \\n, \\r\\n or \\r."""
    for number, raw in enumerate(content.splitlines(), start=1):
        if number == 1 or raw.strip():
            yield number, raw


def _fields(raw: bytes) -> list[str]:
    if len(raw) > MAX_LINE:
        raise _Bad(f"the line is longer than {MAX_LINE} bytes")
    if b"\0" in raw:
        raise _Bad("the line has a NUL byte")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        shown = f"byte {raw[error.start]:#04x} at position {error.start + 1}"
        raise _Bad(f"the line is not UTF-8 ({shown}): save the file as CSV UTF-8") from None
    try:
        return [field.strip() for field in next(csv.reader([text], strict=True), [])]
    except csv.Error as error:
        raise _Bad(f"the line is not CSV: {error}") from None


def _header(raw: bytes) -> list[int]:
    """Return the position of each of COLUMNS. Raises _Bad for any other header."""
    names = [name.lower() for name in _fields(raw)]
    if sorted(names) == sorted(COLUMNS):
        return [names.index(column) for column in COLUMNS]
    wanted = f"the first line must be {','.join(COLUMNS)}"
    if missing := [column for column in COLUMNS if column not in names]:
        hint = " (separated by commas, not semicolons)" if b";" in raw else ""
        raise _Bad(f"{wanted}{hint}: missing {', '.join(missing)}")
    raise _Bad(f"{wanted}, each once and nothing else")


def _line(number: int, raw: bytes, order: list[int]) -> GoodLine:
    fields = _fields(raw)
    if len(fields) != len(COLUMNS):
        raise _Bad(f"{len(fields)} fields instead of {len(COLUMNS)}")
    seller, account, amount, reference = (fields[place] for place in order)
    if not _SELLER.fullmatch(seller):
        raise _Bad("seller: 1 to 40 letters, digits, spaces or . : & + ' _ -")
    if not _ACCOUNT.fullmatch(account):
        raise _Bad("account: 1 to 40 of A-Z a-z 0-9 _ . : -")
    if not _REFERENCE.fullmatch(reference):
        raise _Bad("reference: 1 to 50 printable characters, the first a letter or digit")
    return GoodLine(number, seller, account, _amount(amount), reference)


def _amount(text: str) -> int:
    if not _AMOUNT.fullmatch(text):
        raise _Bad(f"amount: {text[:30]!r} is not a whole number of minor units (12.50 is 1250)")
    value = int(text)
    if abs(value) > BIGINT:
        raise _Bad(f"amount: {text[:30]} leaves the range of BIGINT")
    return value
