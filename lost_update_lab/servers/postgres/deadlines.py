"""Times in rows that are yet to come: the leases that are kept in tables.

    lock(name, owner, deadline)     ('till 1', 'A', 10 s from now)  →  lock[till 1].deadline ends in 10 s

Time does not move past such an end unnoticed: it is a timer like a key's lease in Redis, and what everyone can see is
not the same before and after it. So a waiter looks again when it has passed, in whatever phase its polls are.
"""

from __future__ import annotations

from lost_update_lab.model.bounds import EPOCH, SECOND

#: a name → its end, in µs of the server's clock since the start of the schedule
Ends = tuple[tuple[str, int], ...]
Rows = list[tuple[bytes | None, ...]]
#: what ends later than this is no lease: an account's expiry, a token's
FURTHEST = 600 * SECOND
#: the parts of that query, one for each column
COLUMNS = b"""
SELECT format('SELECT %L || left(%I::text, 40) || %L, ceil(extract(epoch FROM %I%s) * 1000000)::bigint FROM ONLY %I.%I '
    'WHERE %I > timestamptz ''epoch'' + %L::interval', relname || '[', first.attname, '].' || a.attname, a.attname,
    CASE a.atttypid WHEN 'timestamp'::regtype THEN ' AT TIME ZONE ''UTC''' ELSE '' END, nspname, relname, a.attname,
    'BEGAN s')
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
JOIN pg_attribute first ON first.attrelid = c.oid AND first.attnum = 1
WHERE relkind = 'r' AND a.atttypid IN ('timestamp'::regtype, 'timestamptz'::regtype) AND a.attnum > 0
AND nspname NOT IN ('pg_catalog', 'information_schema') AND nspname !~ '^(pg_|explorer)' AND NOT a.attisdropped
AND NOT first.attisdropped
""".replace(b"BEGAN", b"%d" % EPOCH)


def query(columns: Rows) -> bytes:
    """One query for all of them, from the rows of COLUMNS. b"": no table has a time."""
    return b" UNION ALL ".join(row[0] or b"" for row in columns)


def ends(rows: Rows) -> Ends:
    """From the rows of that query. A time is over just after it: `<` and `<=` agree then."""
    began = round(EPOCH) * SECOND
    return tuple(sorted(((name or b"?").decode(), int(at or 0) - began + 1) for name, at in rows))


class Deadlines:
    """Those that were yet to come when they were first seen. (A time that is written down is over at once.)"""

    def __init__(self) -> None:
        self._kept: frozenset[tuple[str, int]] = frozenset()

    def look(self, found: Ends, clock: int) -> None:
        """`found` is committed now, and the server's clock shows `clock`."""
        later = (each for each in found if clock + 1 < each[1] <= clock + FURTHEST)
        self._kept = self._kept.intersection(found).union(later)

    def leases(self, clock: int, ahead: int) -> dict[str, int]:
        """When each ends, in virtual time: the server's clock has jumped `ahead` of it."""
        return {name: at - ahead for name, at in self._kept if at > clock}

    def over(self, clock: int) -> bytes:
        """Those that have passed, as a part of what everyone can see."""
        passed = sorted(name for name, at in self._kept if at <= clock)
        return f"over: {passed}\n".encode() if passed else b""

    def copy(self) -> Deadlines:
        twin = Deadlines()
        twin._kept = self._kept
        return twin
