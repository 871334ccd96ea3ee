"""Entries as a binary COPY stream, computed while the server processes the previous ones.

A row consists of constant parts (per chunk, per account, per account and amount) and one struct.pack. psycopg's
write_row looks up how to write each value of each row, which took as long as everything else together.
"""

from __future__ import annotations

import secrets
import struct
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring_ascii

from ledger.imports.dealing import BulkLine
from ledger.models import Book
from ledger.models.sequence import STEP
from ledger.posting import BIGINT, Refused, hashed, worker

#: in the order of a row's parts
COLUMNS = (
    *("book_id", "worker", "read_at", "written_at"),  # the same for many rows
    *("account_id", "amount", "fingerprint"),  # the same for an account and an amount
    *("parent", "id", "balance_before", "balance_after", "seq", "key"),
)
COPY = f"COPY ledger_entry ({', '.join(COLUMNS)}) FROM STDIN (FORMAT BINARY)"
HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
END = b"\xff\xff"
NULL = b"\xff\xff\xff\xff"
SERVER_EPOCH = 946_684_800_000_000  # 2000-01-01 in µs since 1970
#: lines that are grouped by account and numbered by one draw from the sequence. A larger block would touch more of the
#: key's index than a processor cache holds. A smaller one would spread an account over more of the table, and reconcile
#: reads by account
BLOCK = STEP
#: lines computed at a time: fewer than the socket holds, so the server always has work
BUFFER = 512
number = struct.Struct(">iq").pack  # a BIGINT, or a time
#: parent (the row before), id, balance before, balance after, seq, length of the key
moved = struct.Struct(">i12sI i12sI iq iq iq i").pack
PARENT = 20  # bytes


@dataclass(slots=True)
class Running:
    """A locked account, after the lines so far."""

    pk: int
    number: str
    floor: int | None
    balance: int
    head: bytes | None
    lines: int = 0
    #: amount → the account, amount and fingerprint of a row
    told: dict[int, bytes] = field(default_factory=dict)

    def tell(self, amount: int) -> bytes:
        """Return the constant part of a line with this `amount`. It is cached, because many lines share it."""
        if not -BIGINT <= amount <= BIGINT:
            raise Refused(f"account {self.number}: {amount} leaves the range of BIGINT")
        # Posting.fingerprint of a posting of this one line
        body = f'[[{encode_basestring_ascii(self.number)}, {amount}], ""]'
        self.told[amount] = told = number(8, self.pk) + number(8, amount) + _text(hashed(body).encode())
        return told


def stream(
    book: Book, accounts: dict[str, Running], lines: Sequence[BulkLine], numbers: Sequence[int]
) -> Iterator[bytes]:
    """Yield the `lines` as entries, some at a time, and update `accounts`. Raises Refused.

    `numbers`: the first number of each block (ledger/models/sequence.py), drawn while the accounts are locked. An id
    consists of the chunk's time, 5 random bytes for the chunk, and the line's position. Ids are therefore neighbours
    near the end of the primary key's index.
    """
    chunk, place = _moment() + secrets.token_bytes(5), 0
    of_all = b"\0\x0d" + _text(book.pk.bytes) + _text(worker().encode()) + _now()
    yield HEADER
    for some in _by_account(lines):
        parts: list[bytes] = []
        written = of_all + _now()
        seq = numbers[place // BLOCK] + place % BLOCK
        for account, its in some:
            _compute(accounts[account], its, chunk, place, seq, written, parts)
            place += len(its)
            seq += len(its)
        yield b"".join(parts)
    yield END


def _compute(
    account: Running,
    lines: Sequence[BulkLine],
    chunk: bytes,
    place: int,
    seq: int,
    written: bytes,
    parts: list[bytes],
) -> None:
    """Add rows of one account to `parts`. It uses local names only, because an import spends its time here."""
    floor, before, told = account.floor, account.balance, account.told
    first, previous = len(parts) + 2, (place - 1) % 2**32
    for key, _, amount in lines:
        after = before + amount
        if amount < 0 and floor is not None and after < floor:
            raise Refused(f"{key}: {amount} would break the floor of account {account.number}")
        if not -BIGINT <= after <= BIGINT:
            raise Refused(f"{key}: the balance of account {account.number} would leave the range of BIGINT")
        name = key.encode()
        row = moved(16, chunk, previous, 16, chunk, place, 8, before, 8, after, 8, seq, len(name))
        parts += (written, told.get(amount) or account.tell(amount), row, name)
        before, previous = after, place
        place += 1
        seq += 1
    parts[first] = (_text(account.head) if account.head else NULL) + parts[first][
        PARENT:
    ]  # the previous head
    account.balance, account.head = before, chunk + previous.to_bytes(4, "big")
    account.lines += len(lines)


def _by_account(lines: Sequence[BulkLine]) -> Iterator[list[tuple[str, list[BulkLine]]]]:
    """Yield about BUFFER lines at a time: an account's lines of a block together, in their order."""
    for start in range(0, len(lines), BLOCK):
        by: defaultdict[str, list[BulkLine]] = defaultdict(list)
        for line in lines[start : start + BLOCK]:
            by[line.account].append(line)
        some, count = [], 0
        for account, its in by.items():
            for first in range(0, len(its), BUFFER):
                some.append((account, its[first : first + BUFFER]))
                count += len(some[-1][1])
                if count >= BUFFER:
                    yield some
                    some, count = [], 0
        if some:
            yield some


def _text(value: bytes) -> bytes:
    return len(value).to_bytes(4, "big") + value


def _moment() -> bytes:
    """Return the second, as in the single writer's ids (ledger/writer/caller.py), and three bytes of its fraction."""
    return (time.time_ns() * 2**24 // 10**9 & 0xFF_FFFF_FFFF_FFFF).to_bytes(7, "big")


def _now() -> bytes:
    return number(8, time.time_ns() // 1000 - SERVER_EPOCH)
