"""Any history against a slow and obvious reference."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from hypothesis import assume, example, given
from hypothesis import strategies as st

from ledger.reconcile import AccountBooks, AccountRow, ClientOperation, ClientOutcome, EntryRow, reconcile
from ledger.stores.links import SERVER_EPOCH, ChainLink
from tests.ledger.history import at

#: one write: how many heads ago its writer had read, its amount, its key
WRITES = st.lists(st.tuples(st.integers(0, 3), st.integers(-20, 20), st.integers(0, 30)), max_size=14)
TOLD = st.lists(
    st.tuples(st.integers(0, 30), st.integers(-20, 20), st.sampled_from(list(ClientOutcome))), max_size=14
)


def happened(writes: list[tuple[int, int, int]], opening: int = 100) -> tuple[AccountRow, list[EntryRow]]:
    """Let the writers write in this order, each over whatever is there, as an unprotected ledger does."""
    heads: list[EntryRow | None] = [None]
    for tick, (ago, amount, key) in enumerate(writes, start=1):
        seen = max(0, len(heads) - 1 - ago)
        parent = heads[seen]
        before = parent.balance_after if parent else opening
        heads.append(
            EntryRow(
                UUID(int=tick),
                f"k{key}",
                amount,
                before,
                before + amount,
                parent.id if parent else None,
                f"w{tick}",
                at(seen + 0.5),
                at(tick),
            )
        )
    last = heads[-1]
    balance = last.balance_after if last else opening
    return AccountRow("A1", opening, balance, len(writes), last.id if last else None), [
        row for row in heads if row
    ]


def path(account: AccountRow, entries: list[EntryRow]) -> list[EntryRow]:
    """From the head to the opening, by looking through all entries for each step."""
    found: list[EntryRow] = []
    wanted = account.head
    while wanted is not None:
        found += [row for row in entries if row.id == wanted]
        wanted = found[-1].parent
    return found


def check(books: AccountBooks, expected: dict[str, int]) -> None:
    assert {name: getattr(books, name) for name in expected} == expected


@given(WRITES, st.randoms())
def test_the_stores_own_view(writes, random):
    account, entries = happened(writes)
    chain = path(account, entries)
    there = [row.key for row in chain]
    lost = {row.key: row for row in reversed(entries) if row.key not in there}
    shuffled = random.sample(entries, len(entries))
    books = reconcile(account, sorted(shuffled, key=lambda row: row.written_at))
    extra = [row for index, row in enumerate(reversed(chain)) if row.key in there[len(there) - index :]]
    check(
        books,
        {
            "balanced": True,
            "entries": len(entries),
            "final": account.opening + sum(row.amount for row in chain),
            "lost_updates": len(lost),
            "lost_amount": sum(abs(row.amount) for row in lost.values()),
            "created_updates": len(there) - len(set(there)),
            "created_amount": sum(abs(row.amount) for row in extra),
            "forks": sum(
                1
                for node in [None, *(row.id for row in entries)]
                if len([row for row in entries if row.parent == node]) > 1
            ),
        },
    )
    if not books.created_updates:
        assert books.drift == -sum(row.amount for row in lost.values())
    unordered = reconcile(account, shuffled)
    assert (unordered.lost_updates, unordered.forks) == (books.lost_updates, books.forks)


@given(WRITES, TOLD)
def test_the_clients_view(writes, told):
    account, entries = happened(writes)
    operations = [ClientOperation(f"k{key}", amount, outcome, 0, 1) for key, amount, outcome in told]
    if not operations:
        return
    there = [row.key for row in path(account, entries)]
    best: dict[str, ClientOperation] = {}
    for wanted in (ClientOutcome.OK, ClientOutcome.INFO, ClientOutcome.FAIL):
        for each in operations:
            if each.outcome == wanted:
                best.setdefault(each.key, each)
    ok = [each for each in best.values() if each.outcome == ClientOutcome.OK]
    info = [each for each in best.values() if each.outcome == ClientOutcome.INFO and each.key in there]
    failed = [each for each in best.values() if each.outcome == ClientOutcome.FAIL and each.key in there]
    lost = [each for each in ok if each.key not in there]
    books = reconcile(account, entries, operations)
    check(
        books,
        {
            "acknowledged": sum(each.amount for each in ok),
            "acknowledged_operations": len(ok),
            "lost_updates": len(lost),
            "lost_amount": sum(abs(each.amount) for each in lost),
            "lost_without_trace": len(
                [each for each in lost if each.key not in {row.key for row in entries}]
            ),
            "created_updates": len(failed) + len(there) - len(set(there)),
            "unreported": len(set(there) - set(best)),
            "indeterminate_operations": len(info) + len(set(there) - set(best)),
        },
    )


@given(WRITES.filter(bool))
@example([(0, 1, 1), (1, 1, 2), (2, 1, 3)])
@example([(0, 1, 1), (1, 1, 2), (1, 1, 3)])
def test_the_overwriter_is_the_last_write_that_took_it_out(writes):
    """Against the slow reference: the account is looked at after each write, and asked what its balance has."""
    account, entries = happened([(ago, amount, tick) for tick, (ago, amount, _) in enumerate(writes)])
    books = reconcile(account, entries)
    lost = [row for row in entries if row not in path(account, entries)]
    assert (books.first_loss is None) == (not lost)
    for loss in (books.first_loss, books.last_loss, books.worst_loss):
        if loss is None:
            continue
        assert loss.entry in lost
        had = [loss.entry in path(account._replace(head=row.id), entries) for row in entries]
        came_out = [
            row for row, before, now in zip(entries[1:], had, had[1:], strict=False) if before and not now
        ]
        assert loss.overwritten_by == came_out[-1]
    if lost:
        assert (books.first_loss.entry, books.last_loss.entry) == (lost[0], lost[-1])
        assert abs(books.worst_loss.amount) == max(abs(row.amount) for row in lost)


def as_sent(row: EntryRow) -> ChainLink:
    """`row` as PostgreSQL sends it."""
    parent = row.parent.bytes if row.parent else None
    read_at, written_at = ((moment - SERVER_EPOCH) // timedelta(microseconds=1) for moment in row[7:9])
    return ChainLink(row.id.bytes, *row[1:5], parent, row.worker, read_at, written_at, row.seq, account=1)


@given(WRITES, TOLD)
def test_links_and_whole_rows_give_the_same_books(writes, told):
    """The million-entries way: ids as bytes, times as numbers, and whole rows only of what is shown."""
    account, entries = happened(writes)
    entries = [row._replace(seq=seq) for seq, row in enumerate(entries, 1)]
    operations = [ClientOperation(f"k{key}", amount, outcome, 0, 1) for key, amount, outcome in told]
    links = [as_sent(row) for row in entries]
    assert [link.whole() for link in links] == entries
    assert reconcile(account, links, operations) == reconcile(account, entries, operations)
    assert reconcile(account, links[1:], operations) == reconcile(account, entries[1:], operations)


@given(WRITES, TOLD, st.randoms())
def test_the_order_in_which_entries_come_does_not_matter(writes, told, random):
    """Those that come as they were written are marked all at once, others one after the other. (Of two with one key the
    first that comes is kept, so there are none.)"""
    account, entries = happened(writes)
    assume(len({row.key for row in entries}) == len(entries))
    entries = [row._replace(seq=seq) for seq, row in enumerate(entries, 1)]
    operations = [ClientOperation(f"k{key}", amount, outcome, 0, 1) for key, amount, outcome in told]
    shuffled = random.sample(entries, len(entries))
    assert reconcile(account, shuffled, operations) == reconcile(account, entries, operations)


@given(WRITES.filter(bool), st.data())
def test_a_damaged_chain_never_balances(writes, data):
    """Must fail: take an entry of the chain away, change its amount, its balances or the balance."""
    account, entries = happened(writes)
    victim = data.draw(st.sampled_from(path(account, entries)))
    index, by = entries.index(victim), data.draw(st.integers(1, 5))
    kind = data.draw(st.sampled_from(["gone", "amount", "before", "after", "cycle", "balance"]))
    changed = {
        "amount": victim._replace(amount=victim.amount + by),
        "before": victim._replace(balance_before=victim.balance_before + by),
        "after": victim._replace(balance_after=victim.balance_after + by),
        "cycle": victim._replace(parent=account.head),
    }
    if kind == "gone":
        del entries[index]
    elif kind in changed:
        entries[index] = changed[kind]
    else:
        account = account._replace(balance=account.balance + by)
    books = reconcile(account, entries)
    assert not books.balanced
    assert books.problems
