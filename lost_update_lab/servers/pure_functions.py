"""Functions that come with PostgreSQL or MariaDB, and read nothing but their arguments.

A SELECT that calls only these reads one snapshot, as one that calls none. Any other function may write, lock, or look a
second time. What asks for the clock is in `clock_words.py` of each server, and is found first.
"""

from __future__ import annotations

import re

#: the name of a function, or what could be one, and its bracket; before it the point of any other schema
_CALL = re.compile(r"(?:\bpg_catalog\s*\.\s*|(\.\s*))?(\w+|[\"`])\s*\(", re.IGNORECASE)
#: no function, but may stand before a bracket
_WORDS = """
all and any array as between by case cross distinct else end except exists filter from group having ilike in intersect
is join lateral left like limit not of offset on or order over partition right select some then union using values when
where with within
bigint char character decimal double float integer interval numeric time timestamp timestamptz varchar varying
"""
_AGGREGATES = """
array_agg avg bool_and bool_or count every group_concat json_agg json_object_agg jsonb_agg jsonb_object_agg max min
stddev string_agg sum variance
dense_rank first_value lag last_value lead ntile percent_rank rank row_number
"""
_OF_VALUES = """
abs cast ceil ceiling coalesce concat concat_ws convert date_part date_trunc exp extract floor format greatest hashtext
hashtextextended if ifnull json_build_object json_extract json_unquote json_value jsonb_build_object least left length
lower lpad ltrim md5 mod nullif position power replace reverse right round row rpad rtrim sign split_part sqrt strpos
substr substring to_char to_json to_jsonb trim trunc upper
"""
#: of the connection, or of the server's version
_OF_THE_SESSION = "connection_id current_database current_schema database to_regtype version"
_PURE = frozenset(f"{_WORDS} {_AGGREGATES} {_OF_VALUES} {_OF_THE_SESSION}".split())


def calls_others(text: str) -> bool:
    """Does this SELECT call any other function? One of a user's may have one of these names, in a schema of its own or
    for other types; HiddenOnPostgres.calls() finds it."""
    return any(schema or name.lower() not in _PURE for schema, name in _CALL.findall(text))
