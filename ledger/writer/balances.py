"""A book's accounts in the memory of its owner, and how postings change them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ledger.models import Account, Book, Entry
from ledger.posting import BIGINT
from ledger.writer.clients import OpenOrder
from ledger.writer.group import AccountState, Group
from ledger.writer.wire import Request, Told

#: key → the first entry's id and the balances after, of a posting that was applied before
Known = Mapping[str, tuple[str, list[int]]]


class OwnedAccounts:
    """A book's accounts in its owner's memory. No other process writes them while the fencing number is the newest."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.accounts: dict[str, AccountState] = {}

    def forget(self) -> None:
        """Read everything again, because another process may have written, or a group failed."""
        self.accounts.clear()

    def known(self, asked: Sequence[OpenOrder]) -> Known:
        """Return those of the keys of `asked` that are in the books."""
        keys = {request.key for _, order in asked for request in order.requests if "\0" not in request.key}
        rows = Entry.objects.filter(book=self.book, key__in=keys).order_by("id")  # the order of its lines
        found: dict[str, tuple[str, list[int]]] = {}
        for key, entry, after in rows.values_list("key", "id", "balance_after"):
            found.setdefault(key, (entry.hex, []))[1].append(after)
        return found

    def compute(self, asked: Sequence[OpenOrder], known: Known | None = None) -> Group:
        """Apply the orders one after the other in memory, each request as a whole or not at all.

        A key that is `known`, or occurs earlier in this group, is not applied again. If it is the same request, sent
        again because its answer was lost, it gets the first answer.
        """
        self.load(asked)
        group = Group()
        group.keys.update(known or {})
        for each in asked:
            self.add(each, group)
        return group

    def ready(self, asked: OpenOrder) -> bool:
        """Are all accounts of this order in memory?"""
        accounts = self.accounts
        return all(line[0] in accounts for request in asked.order.requests for line in request.lines)

    def add(self, asked: OpenOrder, group: Group) -> None:
        """Apply one more order in memory, for `group` to write. Its accounts have been read, if they exist."""
        order = asked.order
        window, number, had = order.window, 0, len(group.id)
        answers: list[Told] = []
        for request in order.requests:
            first = f"{window}{number:08x}"
            if before := group.keys.get(request.key):
                answers.append(before[1] if before[0] == first else None)
            elif refused := self._refused(request):
                answers.append(refused)
            else:
                answers.append(self._apply(request, first, group))
            number += len(request.lines)
        group.worker += [asked.client.worker or ""] * (len(group.id) - had)
        group.asked.append(asked)
        group.answers.append(answers)

    def look_again(self, group: Group) -> None:
        """Give the first answer to a refused request that an earlier owner committed before it died.

        That request may have taken the very money that is missing now. Call this when the group is on disk.
        """
        if not any(isinstance(told, str) for answers in group.answers for told in answers):
            return
        known = self.known(group.asked)
        for (_, order), answers in zip(group.asked, group.answers, strict=True):
            number = 0
            for place, request in enumerate(order.requests):
                if isinstance(answers[place], str) and (before := known.get(request.key)):
                    answers[place] = before[1] if before[0] == f"{order.window}{number:08x}" else None
                number += len(request.lines)

    def load(self, asked: Iterable[OpenOrder]) -> None:
        """Read the accounts that are not in memory yet."""
        numbers = {line[0] for _, order in asked for request in order.requests for line in request.lines}
        if unknown := numbers - self.accounts.keys():
            columns = ("number", "pk", "balance", "version", "head", "floor")
            unknown = {
                number for number in unknown if "\0" not in number
            }  # PostgreSQL cannot store such text
            rows = Account.objects.filter(book=self.book, number__in=unknown).values_list(*columns)
            for number, pk, balance, version, head, floor in rows:
                self.accounts[number] = AccountState(
                    str(pk), balance, version, head.hex if head else "NULL", floor
                )

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
            if not (-BIGINT <= after <= BIGINT and -BIGINT <= amount <= BIGINT):
                return f"account {account}: {state.balance} {amount:+d} leaves the range of BIGINT"
        return ""

    def _apply(self, request: Request, first: str, group: Group) -> list[int]:
        key, entry = request.key, first
        balances: list[int] = []
        group.keys[key] = first, balances
        for place, (account, amount) in enumerate(request.lines):
            if place:
                entry = f"{int(first, 16) + place:032x}"
            state = self.accounts[account]
            state.balance = after = state.balance + amount
            group.id.append(entry)
            group.account.append(state.pk)
            group.key.append(key)
            group.fingerprint.append(request.fingerprint)
            group.amount.append(str(amount))
            group.after.append(str(after))
            group.parent.append(state.head)
            group.place.append(str(place))
            state.version += 1
            state.head = entry
            group.touched[account] = state
            balances.append(after)
        return balances
