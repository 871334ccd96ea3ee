"""A group of orders: computed in memory by the owner, committed by one statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ledger.arrays import plain, quoted
from ledger.models import Account, Book, Entry
from ledger.posting import BIGINT
from ledger.writer.clients import Asked
from ledger.writer.wire import Request, Told

# The owner's row is locked by the renewal of its lease: nobody else can become the owner before this commits, and
# with an old fencing number nothing is written at all.
# When an account is not there any more, no entry gets an account, and the whole statement fails.
COMMIT = """
WITH owner AS (
    UPDATE ledger_bookowner SET until = clock_timestamp() + make_interval(secs => $3::float8)
    WHERE book_id = $1::uuid AND fence = $2::bigint RETURNING book_id
), account AS (
    UPDATE ledger_account SET balance = a.balance, version = a.version, head = a.head
    FROM owner, unnest((SELECT $5::bigint[]), $6::bigint[], $7::bigint[], $8::uuid[]) AS a (pk, balance, version, head)
    WHERE id = a.pk RETURNING id
), entry AS (
    INSERT INTO ledger_entry (id, book_id, account_id, key, fingerprint, place, amount, balance_before,
                              balance_after, parent, worker, read_at, written_at)
    SELECT e.id, owner.book_id,
           CASE WHEN (SELECT count(*) FROM account) = cardinality($5::bigint[]) THEN e.account END,
           e.key, e.fingerprint, e.place, e.amount, e.after - e.amount, e.after, e.parent, e.worker,
           $4::timestamptz, clock_timestamp()
    FROM owner, unnest($9::uuid[], $10::bigint[], $11::text[], $12::text[], $13::bigint[], $14::bigint[],
                       $15::uuid[], $16::text[], $17::int[])
         WITH ORDINALITY AS e (id, account, key, fingerprint, amount, after, parent, worker, place, n)
    ORDER BY e.n
)
SELECT count(*) FROM owner
"""

#: key → the first entry's id and the balances after, of a posting that was applied before
Known = Mapping[str, tuple[str, list[int]]]


@dataclass(slots=True)
class State:
    """An account as the owner has it in memory."""

    pk: str
    balance: int
    version: int
    head: str
    floor: int | None


@dataclass(slots=True)
class Group:
    """What a group will write, column by column, and what its callers will hear."""

    answers: list[list[Told]] = field(default_factory=list)
    touched: dict[str, State] = field(default_factory=dict)
    keys: dict[str, tuple[str, list[int]]] = field(default_factory=dict)
    id: list[str] = field(default_factory=list)
    account: list[str] = field(default_factory=list)
    key: list[str] = field(default_factory=list)
    fingerprint: list[str] = field(default_factory=list)
    amount: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    parent: list[str] = field(default_factory=list)
    worker: list[str] = field(default_factory=list)
    place: list[str] = field(default_factory=list)

    def values(self, book: Book, fence: int, lease: float) -> list[str]:
        """Return the parameters of COMMIT."""
        states = self.touched.values()
        return [
            str(book.pk),
            str(fence),
            str(lease),
            datetime.now(UTC).isoformat(),
            plain([state.pk for state in states]),
            plain([str(state.balance) for state in states]),
            plain([str(state.version) for state in states]),
            plain([state.head for state in states]),
            plain(self.id),
            plain(self.account),
            quoted(self.key),
            quoted(self.fingerprint),
            plain(self.amount),
            plain(self.after),
            plain(self.parent),
            quoted(self.worker),
            plain(self.place),
        ]


class Books:
    """A book's accounts in its owner's memory. Nobody else writes them while the fencing number is the newest."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.accounts: dict[str, State] = {}

    def forget(self) -> None:
        """Read everything anew: somebody else may have written, or a group did not go through."""
        self.accounts.clear()

    def known(self, asked: Sequence[Asked]) -> Known:
        """Return those of the keys of `asked` that are in the books."""
        keys = {request.key for _, order in asked for request in order.requests if "\0" not in request.key}
        rows = Entry.objects.filter(book=self.book, key__in=keys).order_by("id")  # as its lines were numbered
        found: dict[str, tuple[str, list[int]]] = {}
        for key, entry, after in rows.values_list("key", "id", "balance_after"):
            found.setdefault(key, (entry.hex, []))[1].append(after)
        return found

    def compute(self, asked: Sequence[Asked], known: Known | None = None) -> Group:
        """Apply the orders one after the other in memory; each request as a whole, or not at all.

        A key that is `known`, or came before in this group, is not applied again. When it was the same request,
        asked once more because its answer was lost, it gets the first answer.
        """
        self._load({line[0] for _, order in asked for request in order.requests for line in request.lines})
        group = Group()
        group.keys.update(known or {})
        for client, order in asked:
            worker, window, number = client.worker or "", order.window, 0
            answers: list[Told] = []
            for request in order.requests:
                first = f"{window}{number:08x}"
                if before := group.keys.get(request.key):
                    answers.append(before[1] if before[0] == first else None)
                elif refused := self._refused(request):
                    answers.append(refused)
                else:
                    answers.append(self._apply(request, worker, window, number, group))
                number += len(request.lines)
            group.answers.append(answers)
        return group

    def look_again(self, asked: Sequence[Asked], group: Group) -> None:
        """A refused request may have been committed by an owner that died before it could answer, and have taken the
        very money that is missing now: give it the first answer. To be called when the group is on the disk."""
        if not any(isinstance(told, str) for answers in group.answers for told in answers):
            return
        known = self.known(asked)
        for (_, order), answers in zip(asked, group.answers, strict=True):
            number = 0
            for place, request in enumerate(order.requests):
                if isinstance(answers[place], str) and (before := known.get(request.key)):
                    answers[place] = before[1] if before[0] == f"{order.window}{number:08x}" else None
                number += len(request.lines)

    def _load(self, numbers: set[str]) -> None:
        if unknown := numbers - self.accounts.keys():
            columns = ("number", "pk", "balance", "version", "head", "floor")
            unknown = {number for number in unknown if "\0" not in number}  # PostgreSQL has no such text
            rows = Account.objects.filter(book=self.book, number__in=unknown).values_list(*columns)
            for number, pk, balance, version, head, floor in rows:
                self.accounts[number] = State(str(pk), balance, version, head.hex if head else "NULL", floor)

    def _refused(self, request: Request) -> str:
        if "\0" in request.key:
            return "a key cannot have a NUL character"
        if len(request.lines) > 1 and len(request.lines) > len({account for account, _ in request.lines}):
            return "an account comes twice in this posting"
        for account, amount in request.lines:
            state = self.accounts.get(account)
            if state is None:
                return f"no account {account} in this book"
            after = state.balance + amount
            if amount < 0 and state.floor is not None and after < state.floor:
                return f"account {account} has {state.balance}: {amount} would break {state.floor}"
            if abs(after) > BIGINT or abs(amount) > BIGINT:
                return f"account {account}: {state.balance} {amount:+d} leaves the range of BIGINT"
        return ""

    def _apply(self, request: Request, worker: str, window: str, number: int, group: Group) -> list[int]:
        key, balances = request.key, []
        group.keys[key] = f"{window}{number:08x}", balances
        for place, (account, amount) in enumerate(request.lines):
            state = self.accounts[account]
            entry = f"{window}{number:08x}"
            number += 1
            state.balance = after = state.balance + amount
            group.id.append(entry)
            group.account.append(state.pk)
            group.key.append(key)
            group.fingerprint.append(request.fingerprint)
            group.amount.append(str(amount))
            group.after.append(str(after))
            group.parent.append(state.head)
            group.worker.append(worker)
            group.place.append(str(place))
            state.version += 1
            state.head = entry
            group.touched[account] = state
            balances.append(after)
        return balances
