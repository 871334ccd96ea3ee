"""Functions that answer in place of PostgreSQL's own clock (clock_words.py). They work on any server, without a library
under it.

A session is told, before each of its commands that asks for a time, when its transaction and its command began. What
the clock shows at this very moment is a sequence's number, which no snapshot hides: a command that has waited for a row
sees the time go on, as clock_timestamp() does. Outside a search that starts them, nothing calls these functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from lost_update_lab.model.epoch import Epoch

_TRANSACTION, _STATEMENT = "explorer.transaction", "explorer.statement"
_TIMES = {
    "now": ("timestamptz", _TRANSACTION),
    "transaction_timestamp": ("timestamptz", _TRANSACTION),
    "statement_timestamp": ("timestamptz", _STATEMENT),
    '"current_timestamp"': ("timestamptz", _TRANSACTION),
    '"localtimestamp"': ("timestamp", _TRANSACTION),
    '"current_date"': ("date", _TRANSACTION),
    '"current_time"': ("timetz", _TRANSACTION),
    '"localtime"': ("time", _TRANSACTION),
}
_TIME = """
CREATE OR REPLACE FUNCTION explorer.{name}() RETURNS {kind} LANGUAGE sql STABLE
    RETURN coalesce(nullif(current_setting('{setting}', true), '')::timestamptz, explorer.clock_timestamp())::{kind};
"""
_OTHERS = """
CREATE SCHEMA IF NOT EXISTS explorer;
GRANT USAGE ON SCHEMA explorer TO PUBLIC;
CREATE SEQUENCE IF NOT EXISTS explorer.virtual_clock MINVALUE 0;
GRANT SELECT ON SEQUENCE explorer.virtual_clock TO PUBLIC;
CREATE OR REPLACE FUNCTION explorer.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT timestamptz 'BEGAN' + last_value * interval '1 microsecond' FROM explorer.virtual_clock $$;
CREATE OR REPLACE FUNCTION explorer.pg_sleep(seconds double precision) RETURNS void LANGUAGE sql VOLATILE
    RETURN NULL::void;
CREATE OR REPLACE FUNCTION explorer.takes_too_long() RETURNS void LANGUAGE plpgsql AS $$
    BEGIN RAISE query_canceled USING MESSAGE = 'canceling statement due to statement timeout'; END $$;
"""
SET_CLOCK = b"SELECT setval('explorer.virtual_clock', $1::bigint)"


def shadows() -> str:
    """Makes all of them."""
    of_a_session = (
        _TIME.format(name=name, kind=kind, setting=setting) for name, (kind, setting) in _TIMES.items()
    )
    return _OTHERS.replace("BEGAN", shown(0)) + "".join(of_a_session)


def shown(clock: int) -> str:
    """What the server's clock shows, as PostgreSQL reads it. `clock`: µs since the start of the schedule."""
    return (datetime.fromtimestamp(Epoch.shows, UTC) + timedelta(microseconds=clock)).isoformat()


def told(transaction: int, statement: int) -> bytes:
    """The commands that tell a session when its transaction and its command began, in µs as above. A SET takes no
    snapshot."""
    times: Mapping[str, int] = {_TRANSACTION: transaction, _STATEMENT: statement}
    return "; ".join(f"SET {name} = '{shown(at)}'" for name, at in times.items()).encode()
