"""Large tables: only the rows that are newer than the opening state are hashed, and restored.

PostgreSQL writes into each row which transaction made it (xmin). A transaction of a schedule is younger than `since`.
So the rows that are not younger are opening rows, unchanged. An opening row is gone if its key belongs to a younger row
and to no older one. That finds each changed row by its key. If the numbers do not come out (a row was deleted, or its
key changed), the whole table is compared.
"""

from __future__ import annotations

from psycopg import sql

#: rows, from which on a table is large
LARGE_FROM = 1000
#: of a function in the server
DECLARED = "lab_rows bigint; lab_new tid[]; lab_more numeric; lab_gone tid[]; lab_less numeric; "
#: the rows that are younger, and then the opening rows that are gone
_FIND = (
    "SELECT count(*), coalesce(array_agg(ctid) FILTER (WHERE {young}), '{{}}'), "
    "coalesce(sum({hash}) FILTER (WHERE {young}), 0) INTO lab_rows, lab_new, lab_more FROM ONLY {table}; "
    "SELECT coalesce(array_agg(lab_kept.ctid), '{{}}'), coalesce(sum(hash), 0) INTO lab_gone, lab_less FROM "
    "(SELECT DISTINCT {key} FROM ONLY {table} WHERE ctid = ANY(lab_new)) AS lab_n, LATERAL ("
    "SELECT k.ctid, {hash} AS hash FROM {kept} AS k WHERE {same_n} "
    "AND NOT EXISTS (SELECT FROM ONLY {table} AS o WHERE {same_o} AND NOT {young_o}) LIMIT 1) AS lab_kept; "
)
#: whether these are all that are gone
_ALL_FOUND = "lab_rows - cardinality(lab_new) + cardinality(lab_gone) = split_part({opening}, '/', 2)::bigint"
_INSERT = "INSERT INTO {table} ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns} FROM {kept} AS k "
LOOK = sql.SQL(
    f"IF lab_written[{{number}}] THEN {_FIND} lab_now := CASE WHEN {_ALL_FOUND} "
    "THEN (split_part({opening}, '/', 1)::numeric - lab_less + lab_more) || '/' || lab_rows ELSE {sum} END; "
    "IF lab_now <> {opening} THEN lab_found := lab_found || '{number}:' || lab_now || ','; END IF; END IF;"
)
PUT_BACK = sql.SQL(
    f"IF lab_written[{{number}}] THEN {_FIND} DELETE FROM ONLY {{table}} WHERE ctid = ANY(lab_new); "  # noqa: S608
    f"{_INSERT} WHERE ctid = ANY(lab_gone); IF NOT ({_ALL_FOUND}) THEN "
    f"{_INSERT} WHERE NOT EXISTS (SELECT FROM ONLY {{table}} AS o WHERE {{same_o}}); END IF; END IF; "
    "IF lab_every AND {sum} <> {opening} THEN DELETE FROM ONLY {table}; lab_found := lab_found || '{number}!,'; END IF;"
)


def fields(key: tuple[str, ...], since: int) -> dict[str, sql.Composable]:
    """`key`: the columns of its primary key. `since`: the number of the first transaction that a schedule may have."""
    young = "age({}xmin) <= age('{}'::xid)"
    return {
        "key": sql.SQL(", ").join(map(sql.Identifier, key)),
        "same_n": _same(key, "lab_n"),
        "same_o": _same(key, "o"),
        "young": sql.SQL(young.format("", since)),
        "young_o": sql.SQL(young.format("o.", since)),
    }


def _same(key: tuple[str, ...], other: str) -> sql.Composed:
    each = [sql.SQL("k.{0} = {1}.{0}").format(sql.Identifier(name), sql.Identifier(other)) for name in key]
    return sql.SQL(" AND ").join(each)
